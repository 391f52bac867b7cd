// kafkajs reads so many records in a consumer group, commits and leaves; printed as JSON.
import kafkajs from "kafkajs";

const { Kafka, logLevel } = kafkajs;
const wanted = Number(process.argv[3]);
const kafka = new Kafka({ clientId: "test", brokers: [process.argv[2]], logLevel: logLevel.NOTHING });
const consumer = kafka.consumer({ groupId: "js", maxWaitTimeInMs: 500 });
await consumer.connect();
await consumer.subscribe({ topics: ["main"], fromBeginning: true });
const rows = [];
await new Promise((resolve, reject) => {
  consumer.on(consumer.events.CRASH, ({ payload }) => reject(payload.error));
  consumer.run({
    eachMessage: async ({ partition, message }) => {
      rows.push([partition, Number(message.offset)]);
      if (rows.length === wanted) resolve();
    },
  }).catch(reject);
});
await consumer.disconnect();
console.log(JSON.stringify(rows));
process.exit(0);
