// @platformatic/kafka reads so many records in a consumer group; prints partition, offset, key and value in base64.
import { once } from "node:events";
import { Consumer } from "@platformatic/kafka";

const [, , address, wanted] = process.argv;
const consumer = new Consumer({ clientId: "test", bootstrapBrokers: [address], groupId: "platformatic-read" });
const stream = await consumer.consume({ topics: ["main"], mode: "earliest", autocommit: true, maxWaitTime: 500 });
let found = 0;
for await (const { partition, offset, key, value } of stream) {
  if (!process.stdout.write(`${partition} ${offset} ${key} ${value.toString("base64")}\n`)) await once(process.stdout, "drain");
  found += 1;
  if (found === Number(wanted)) break;
}
await consumer.close(true);
