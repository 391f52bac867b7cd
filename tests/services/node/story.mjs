// The calls of rumq.v1.BrokerService by gRPC's own client for Node.js. Prints what it saw as a line of JSON.
import grpc from "@grpc/grpc-js";
import loader from "@grpc/proto-loader";

const [target, proto] = process.argv.slice(2);
const definition = loader.loadSync("rumq/v1/broker_service.proto", { includeDirs: [proto], longs: Number, defaults: true });
const { BrokerService } = grpc.loadPackageDefinition(definition).rumq.v1;
const client = new BrokerService(target, grpc.credentials.createInsecure());
const deadline = () => ({ deadline: Date.now() + 30_000 });

const call = (name, request) =>
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

const publishStream = (requests) =>
  new Promise((resolve, reject) => {
    const stream = client.PublishStream(deadline());
    const ids = [], refusals = [];
    stream.on("data", (answer) => {
      refusals.push(...answer.refusals.map((each) => [ids.length + each.index, each.reason]));
      ids.push(...answer.ids);
    });
    stream.on("error", reject);
    stream.on("end", () => resolve({ ids, refusals }));
    for (const messages of requests) stream.write({ messages });
    stream.end();
  });

const subscribe = (request, enough, begun = () => {}) =>
  new Promise((resolve, reject) => {
    const stream = client.Subscribe(request, deadline());
    const records = [];
    let cursor = "";
    stream.on("metadata", begun);
    stream.on("data", (answer) => {
      records.push(...answer.records.map((each) => [each.topic, each.id, each.payload.toString()]));
      cursor = answer.cursor;
      if (records.length >= enough) stream.cancel();
    });
    stream.on("error", (error) =>
      error.code === grpc.status.CANCELLED ? resolve({ records, cursor }) : reject(error));
  });

const text = (topic, payload) => ({ topic, payload: Buffer.from(payload) });
const seen = {};
seen.ids = [];
for (const n of [1, 2, 3]) seen.ids.push((await call("Publish", { message: text("node/a", `${n}`) })).id);
seen.stream = await publishStream([[text("node/b", "1"), text("node/#", "x"), text("node/b", "2")], [text("node/a", "4")]]);
seen.fetched = (await call("Fetch", { topic: "node/a", id: 2 })).record.payload.toString();
seen.past = await subscribe({ topics: { "node/a": { id: 2 }, "node/b": { position: "POSITION_EARLIEST" } } }, 5);
seen.rest = await subscribe(
  { topics: { "node/a": { id: 2 }, "node/b": {} }, cursor: seen.past.cursor }, 1,
  () => call("Publish", { message: text("node/b", "live") }));
seen.live = await subscribe(
  { topics: { "node/live": { position: "POSITION_LATEST" } } }, 2,
  () => publishStream([[text("node/live", "1"), text("node/live", "2")]]));
seen.topics = (await call("DescribeTopics", { filter: "node/#" })).topics.map((each) => [each.topic, each.lastId]);
seen.faults = [
  await fault("Fetch", { topic: "node/a", id: 99 }),
  await fault("Publish", { message: text("a/+", "x") }),
  await fault("DescribeClients", {}),
  await fault("DescribeStreams", {}),
  await fault("Broadcast", { clients: "*", message: text("t", "x") }),
];
client.close();
console.log(JSON.stringify(seen));
