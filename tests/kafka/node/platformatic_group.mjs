// @platformatic/kafka reads so many records in a consumer group, commits and leaves; printed as JSON.
import { Consumer } from "@platformatic/kafka";

const [, , address, wanted] = process.argv;
const consumer = new Consumer({ clientId: "test", bootstrapBrokers: [address], groupId: "platformatic" });
const stream = await consumer.consume({ topics: ["main"], mode: "earliest", autocommit: false, maxWaitTime: 500 });
const rows = [];
for await (const message of stream) {
  rows.push([message.partition, Number(message.offset)]);
  await message.commit();
  if (rows.length === Number(wanted)) break;
}
await consumer.close(true);
console.log(JSON.stringify(rows));
process.exit(0);
