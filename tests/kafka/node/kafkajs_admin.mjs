// Topics and offsets as kafkajs sees them, and what it says of a consumer group; printed as JSON.
import kafkajs from "kafkajs";

const { Kafka, logLevel } = kafkajs;
const kafka = new Kafka({ clientId: "test", brokers: [process.argv[2]], logLevel: logLevel.NOTHING, retry: { retries: 0 } });
const admin = kafka.admin();
await admin.connect();
const topics = await admin.listTopics();
const offsets = await admin.fetchTopicOffsets("main");
await admin.disconnect();

const consumer = kafka.consumer({ groupId: "mine" });
await consumer.connect();
await consumer.subscribe({ topics: ["main"], fromBeginning: true });
const group = await new Promise((resolve) => {
  consumer.on(consumer.events.CRASH, ({ payload }) => resolve(`${payload.error.type} ${payload.error.message}`));
  consumer.run({ eachMessage: async () => {} }).catch((fault) => resolve(`${fault.type} ${fault.message}`));
});
await consumer.disconnect();
console.log(JSON.stringify({ topics, offsets, group }));
process.exit(0);
