// Topics as @platformatic/kafka sees them; printed as JSON.
import { Admin } from "@platformatic/kafka";

const admin = new Admin({ clientId: "test", bootstrapBrokers: [process.argv[2]], retries: 0 });
const topics = await admin.listTopics();
await admin.close();
console.log(JSON.stringify({ topics }));
process.exit(0);
