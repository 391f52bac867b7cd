// Topics and offsets as kafkajs sees them; printed as JSON.
import kafkajs from "kafkajs";

const { Kafka, logLevel } = kafkajs;
const kafka = new Kafka({ clientId: "test", brokers: [process.argv[2]], logLevel: logLevel.NOTHING, retry: { retries: 0 } });
const admin = kafka.admin();
await admin.connect();
const topics = await admin.listTopics();
const offsets = await admin.fetchTopicOffsets("main");
await admin.disconnect();
console.log(JSON.stringify({ topics, offsets }));
process.exit(0);
