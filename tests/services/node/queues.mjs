// The calls of rumq.v1.Queues by gRPC's own client for Node.js. Prints what it saw as a line of JSON.
import grpc from "@grpc/grpc-js";
import loader from "@grpc/proto-loader";

const [target, proto] = process.argv.slice(2);
const definition = loader.loadSync("rumq/v1/queues.proto", {
  includeDirs: [proto], longs: Number, defaults: true, enums: String });
const { Queues } = grpc.loadPackageDefinition(definition).rumq.v1;
const client = new Queues(target, grpc.credentials.createInsecure());
const deadline = () => ({ deadline: Date.now() + 30_000 });

const call = (name, request = {}) =>
  new Promise((resolve, reject) =>
    client[name](request, deadline(), (error, answer) => (error ? reject(error) : resolve(answer))));

const fault = async (name, request) => {
  try {
    await call(name, request);
  } catch (error) {
    const details = error.metadata.get("grpc-status-details-bin")[0];
    return [grpc.status[error.code], /[A-Z]+_[A-Z_]+/.exec(details.toString("latin1").split("ErrorInfo")[1])[0]];
  }
};

const text = (payload, topic = "") => ({ topic, payload: Buffer.from(payload) });
const row = (each) => [each.id, each.payload.toString(), each.tries];

const pushStream = (requests) =>
  new Promise((resolve, reject) => {
    const stream = client.PushStream(deadline());
    const ids = [];
    stream.on("data", (answer) => ids.push(...answer.ids));
    stream.on("error", reject);
    stream.on("end", () => resolve(ids));
    for (const each of requests) stream.write(each);
    stream.end();
  });

// Takes so many messages, answers as `answers` says, and closes its side once it was told what became of them.
const consume = (channel, count, answers) =>
  new Promise((resolve, reject) => {
    const stream = client.Consume(deadline());
    const messages = [];
    let answered = null, sent = false;
    stream.on("data", (response) => {
      messages.push(...response.messages);
      if (response.answered) {
        answered = [response.answered.done, response.answered.notHeld];
        stream.end();
      }
      if (messages.length >= count && !sent) {
        sent = true;
        stream.write({ answers: answers(messages.map((each) => each.id)) });
      }
    });
    stream.on("error", reject);
    stream.on("end", () => resolve({ messages: messages.map(row), answered }));
    stream.write({ channel, credit: 10 });
  });

// Takes so many messages one way; answers by Acknowledge, under the consumer's name.
const subscribe = (request, count, answers) =>
  new Promise((resolve, reject) => {
    const stream = client.SubscribeToChannel(request, deadline());
    const messages = [];
    let consumer = "", answered = null, sent = false;
    stream.on("data", async (response) => {
      consumer ||= response.consumer;
      messages.push(...response.messages);
      if (messages.length < count || sent) return;
      sent = true;
      if (answers) {
        const told = await call("Acknowledge", { consumer, answers: answers(messages.map((each) => each.id)) });
        answered = told.answered.done;
      }
      stream.cancel();
    });
    stream.on("error", (error) =>
      error.code === grpc.status.CANCELLED ? resolve({ messages: messages.map(row), answered }) : reject(error));
  });

const seen = {};
const queue = (await call("CreateQueue", { queue: "Node" })).queue;
seen.queue = [queue.label, queue.settings.ttlSeconds, queue.settings.recordsMax, queue.settings.whenFull];
const channel = (await call("CreateChannel", { queue: "node", id: "Node-All" })).channel;
seen.channel = [channel.id, channel.queue, channel.topic, channel.share];
seen.ids = (await call("PushToQueue", { queue: "node", messages: [text("1"), text("2", "T"), text("x", "a/#")] })).ids;
seen.stream = await pushStream([{ queue: "node", messages: [text("3")] }, { messages: [text("4", "t")] }]);
seen.consumed = await consume("node-all", 4, (ids) => ({ acknowledge: [ids[0], "99@t"], reject: [ids[1]] }));
seen.subscribed = await subscribe({ channel: "node-all", credit: 10 }, 3, (ids) => ({ acknowledge: ids }));
await call("PushToQueue", { queue: "node", messages: [text("5")], withoutIds: true });
seen.automatic = (await subscribe({ channel: "node-all", autoAcknowledge: true }, 1)).messages;
seen.peeked = (await call("PeekQueue", { queue: "node", topic: "t" })).messages.map(row);
seen.topics = (await call("ListTopics", { queue: "node" })).topics;
const rebuilt = await call("RebuildQueue", { queue: "node" });
seen.rebuilt = [rebuilt.queue.label, rebuilt.partitions.map((each) => each.stream), rebuilt.missing, rebuilt.wasStale];
seen.listed = [
  (await call("ListQueues", { part: "node" })).queues.map((each) => each.label),
  (await call("ListChannels", { queue: "node" })).channels.map((each) => each.id),
  (await call("GetQueue", { queue: "node" })).queue.channels,
  (await call("GetChannel", { channel: "NODE-ALL" })).channel.id];
seen.purged = [
  typeof (await call("PurgeQueue", { queue: "node" })).messages,
  typeof (await call("PurgeChannel", { channel: "node-all" })).messages,
  (await call("RedriveQueue", { queue: "node" })).messages];
const beat = await call("GetHeartbeat");
seen.heartbeat = [beat.serving, beat.queues >= 2, Math.abs(beat.timeUs / 1000 - Date.now()) < 60_000];
await call("DeleteChannel", { channel: "node-all" });
await call("DeleteQueue", { queue: "NODE" });
seen.faults = [
  await fault("GetChannel", { channel: "no-such" }), await fault("DeleteQueue", { queue: "node" }),
  await fault("CreateQueue", { queue: "a/b" }), await fault("GetChannel", { channel: "\0" })];
client.close();
console.log(JSON.stringify(seen));
