// kafkajs reads so many records in a consumer group; prints partition, offset, key and value in base64, a line each.
import { once } from "node:events";
import kafkajs from "kafkajs";

const { Kafka, logLevel } = kafkajs;
const wanted = Number(process.argv[3]);
const kafka = new Kafka({ clientId: "test", brokers: [process.argv[2]], logLevel: logLevel.NOTHING });
const consumer = kafka.consumer({ groupId: "js-read", maxWaitTimeInMs: 500 });
await consumer.connect();
await consumer.subscribe({ topics: ["main"], fromBeginning: true });
let found = 0;
await new Promise((resolve, reject) => {
  consumer.on(consumer.events.CRASH, ({ payload }) => reject(payload.error));
  consumer.run({
    eachBatch: async ({ batch }) => {
      const lines = batch.messages.map(
        ({ offset, key, value }) => `${batch.partition} ${offset} ${key} ${value.toString("base64")}\n`,
      );
      if (!process.stdout.write(lines.join(""))) await once(process.stdout, "drain");
      found += lines.length;
      if (found >= wanted) resolve();
    },
  }).catch(reject);
});
await consumer.disconnect();
