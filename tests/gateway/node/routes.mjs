// The routes of queues by a client that openapi-client-axios makes from the broker's own description: node routes.mjs URL TOKEN
import axios from "axios";
import { OpenAPIClientAxios } from "openapi-client-axios";

const [url, token] = process.argv.slice(2);
const { data: definition } = await axios.get(`${url}/api/v1/openapi.json`, { headers: { authorization: `Bearer ${token}` } });
const api = new OpenAPIClientAxios({
  definition,
  axiosConfigDefaults: { baseURL: url, headers: { authorization: `Bearer ${token}` }, validateStatus: () => true },
});
const client = await api.init();
const seen = {};
const tell = (name, answer, ...fields) => {
  seen[name] = [answer.status, ...fields.map((field) => answer.data[field])];
  return answer.data;
};

tell("create", await client.create_queue({ label: "Node" }), "label", "host", "port");
tell("create again", await client.create_queue({ label: "NODE" }), "label");
tell("describe", await client.queue({ label: "node" }), "label", "host", "port");
const queues = tell("list", await client.queues());
seen.labels = queues.queues.map((queue) => queue.label);
const channel = tell("channel", await client.create_topic_channel({ label: "node", topic: "sport" }), "host", "port");
tell("describe channel", await client.channel({ id: channel.id }), "label", "host", "port");
tell("bad channel", await client.channel({ id: "no such" }), "title");
const pushed = tell("push", await client.push({ label: "node" }, [{ topic: "sport", payload: "1" }, { topic: "art", payload: "2" }]));
seen.ids = pushed.ids;
const topics = tell("topics", await client.queue_topics({ label: "node" }));
seen.topics = topics.topics;
const channels = tell("channels", await client.channels({ queue: "node" }));
seen.channels = channels.channels.map((each) => each.id === channel.id);
const taken = tell("take", await client.take({ id: channel.id, wait: 20, consumer: "node" }));
seen.messages = taken.messages.map((each) => each.payload);
seen.answered = (await client.acknowledge({ id: channel.id }, { consumer: "node", acknowledge: taken.messages.map((each) => each.id) })).data;
tell("delete channel", await client.delete_channel({ id: channel.id }));
tell("deleted channel", await client.channel({ id: channel.id }), "title");
tell("delete", await client.delete_queue({ label: "node" }));
tell("deleted", await client.queue({ label: "node" }), "title");
console.log(JSON.stringify(seen));
