// Topics as @platformatic/kafka sees them, and what it says of a consumer group; printed as JSON.
import { Admin, Consumer } from "@platformatic/kafka";

const options = { clientId: "test", bootstrapBrokers: [process.argv[2]], retries: 0 };
const admin = new Admin(options);
const topics = await admin.listTopics();
await admin.close();

const consumer = new Consumer({ ...options, groupId: "mine" });
const words = (fault) => [fault.message, fault.apiId, ...(fault.errors ?? []).map(words), fault.cause ? words(fault.cause) : ""].join(" ");
const group = await consumer.consume({ topics: ["main"], mode: "earliest" }).then(() => "joined", words);
await consumer.close(true).catch(() => {});
console.log(JSON.stringify({ topics, group }));
process.exit(0);
