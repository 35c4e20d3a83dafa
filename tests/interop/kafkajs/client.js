// What kafkajs asks of a broker: a line for each case. Its codecs of lz4 and zstd are packages for it to be given.
"use strict";

const assert = require("node:assert/strict");
const crypto = require("node:crypto");
const fs = require("node:fs");
const { CompressionCodecs, CompressionTypes, ConfigResourceTypes, Kafka, PartitionAssigners, logLevel } = require("kafkajs");

const BOOTSTRAP = process.env.BOOTSTRAP;
const LIMIT_MS = 60_000;
const FAILED = 3;
const HEADERS = { origin: ["EWR", "JFK"], empty: "" };
const RECORDS = Array.from({ length: 300 }, (_, i) => ({
  key: `k${i}`,
  value: `value-${i}`.repeat(i % 50),
  headers: i % 2 ? HEADERS : {},
  partition: 0,
}));

class NotRun extends Error {}

function given(variable) {
  const value = process.env[variable];
  if (value === undefined) throw new NotRun(`the broker was started without ${variable}`);
  return value;
}

function kafka(options = {}) {
  return new Kafka({ brokers: [BOOTSTRAP], logLevel: logLevel.NOTHING, retry: { retries: 3 }, ...options });
}

const fresh = (prefix) => prefix + crypto.randomBytes(4).toString("hex");
const pause = (ms) => new Promise((done) => setTimeout(done, ms));

async function until(holds, what) {
  for (let tries = 0; !(await holds()); tries++) {
    assert(tries < 1500, `${what}: not within 30 seconds`);
    await pause(20);
  }
}

async function connected(client, work) {
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.disconnect();
  }
}

async function newTopic(numPartitions = 1, configEntries = []) {
  const topic = fresh("t-");
  await connected(kafka().admin(), (admin) =>
    admin.createTopics({ waitForLeaders: true, topics: [{ topic, numPartitions, replicationFactor: 1, configEntries }] }),
  );
  return topic;
}

const produce = (topic, messages, { producer = {}, send = {}, client = {} } = {}) =>
  connected(kafka(client).producer(producer), (sender) => sender.send({ topic, messages, acks: -1, ...send }));

async function readAll(topic, count, { client = {}, ...options } = {}) {
  const found = [];
  const consumer = kafka(client).consumer({ groupId: fresh("g-"), ...options });
  await connected(consumer, async () => {
    await consumer.subscribe({ topic, fromBeginning: true });
    await consumer.run({ eachMessage: async ({ message }) => void found.push(message) });
    await until(() => found.length >= count, `${count} records`);
  });
  return found;
}

const values = (messages) => messages.map((message) => message.value.toString());

function text(headers) {
  const one = (value) => (Array.isArray(value) ? value.map(String) : String(value));
  return Object.fromEntries(Object.entries(headers).map(([key, value]) => [key, one(value)]));
}

async function codec(compression) {
  const topic = await newTopic();
  await produce(topic, RECORDS, { send: { compression } });
  const found = await readAll(topic, RECORDS.length);
  assert.deepEqual(values(found), RECORDS.map((record) => record.value));
  assert.deepEqual(found.map((m) => m.key.toString()), RECORDS.map((record) => record.key));
  assert.deepEqual(found.map((m) => text(m.headers)), RECORDS.map((record) => record.headers));
  assert.deepEqual(found.map((m) => Number(m.offset)), RECORDS.map((_, i) => i));
}

function installCodecs() {
  const lz4 = require("lz4-napi");
  CompressionCodecs[CompressionTypes.Snappy] = require("kafkajs-snappy");
  CompressionCodecs[CompressionTypes.LZ4] = () => ({
    compress: (encoder) => lz4.compressFrame(encoder.buffer),
    decompress: (data) => lz4.decompressFrame(data),
  });
  return new Promise((done) =>
    require("zstd-codec").ZstdCodec.run((zstd) => {
      const simple = new zstd.Simple();
      CompressionCodecs[CompressionTypes.ZSTD] = () => ({
        compress: async (encoder) => Buffer.from(simple.compress(encoder.buffer)),
        decompress: async (data) => Buffer.from(simple.decompress(data)),
      });
      done();
    }),
  );
}

async function topics() {
  const name = await newTopic(3);
  await connected(kafka().admin(), async (admin) => {
    assert((await admin.listTopics()).includes(name));
    const { topics: [described] } = await admin.fetchTopicMetadata({ topics: [name] });
    assert.equal(described.partitions.length, 3);
    await admin.deleteTopics({ topics: [name] });
    assert(!(await admin.listTopics()).includes(name));
  });
}

async function produceIdempotent() {
  const topic = await newTopic();
  const sent = Array.from({ length: 50 }, (_, i) => String(i));
  await connected(kafka().producer({ idempotent: true }), async (producer) => {
    for (const value of sent) await producer.send({ topic, messages: [{ value, partition: 0 }] });
  });
  assert.deepEqual(values(await readAll(topic, sent.length)), sent);
}

async function groupRebalances() {
  const [topic, groupId, seen] = [await newTopic(4), fresh("g-"), []];
  const member = () =>
    kafka().consumer({ groupId, partitionAssigners: [PartitionAssigners.roundRobin], heartbeatInterval: 200, maxWaitTimeInMs: 200 });
  const start = async (consumer) => {
    let owned = 0;
    consumer.on(consumer.events.GROUP_JOIN, (event) => (owned = (event.payload.memberAssignment[topic] || []).length));
    await consumer.connect();
    await consumer.subscribe({ topic, fromBeginning: true });
    await consumer.run({ eachMessage: async ({ message }) => void seen.push(message.value.toString()) });
    return () => owned;
  };
  const [first, second] = [member(), member()];
  try {
    const mine = await start(first);
    await until(() => mine() === 4, "one member with four partitions");
    const theirs = await start(second);
    await until(() => mine() === 2 && theirs() === 2, "two members with two partitions each");
    const messages = Array.from({ length: 200 }, (_, i) => ({ value: String(i), partition: i % 4 }));
    await produce(topic, messages);
    await until(() => seen.length >= 200, "every record");
    await second.disconnect();
    await until(() => mine() === 4, "the partitions of who left");
    assert.equal(new Set(seen).size, 200);
    assert.equal(seen.length, 200);
  } finally {
    await first.disconnect();
  }
}

async function transactions() {
  const topic = await newTopic();
  const sender = kafka().producer({ transactionalId: `x-${topic}`, idempotent: true, maxInFlightRequests: 1 });
  await connected(sender, async () => {
    for (const [number, end] of ["commit", "abort", "commit"].entries()) {
      const transaction = await sender.transaction();
      const messages = Array.from({ length: 10 }, (_, i) => ({ value: `${number}-${i}`, partition: 0 }));
      await transaction.send({ topic, messages });
      await transaction[end]();
    }
  });
  const committed = values(await readAll(topic, 20));
  assert.deepEqual(committed.map((value) => value[0]), [..."0".repeat(10), ..."2".repeat(10)]);
  assert.equal((await readAll(topic, 30, { readUncommitted: true })).length, 30);
}

async function transactionWithOffsets() {
  const [topic, groupId] = [await newTopic(), fresh("g-")];
  const sender = kafka().producer({ transactionalId: `x-${topic}`, idempotent: true, maxInFlightRequests: 1 });
  await connected(sender, async () => {
    const transaction = await sender.transaction();
    const partitions = [{ partition: 0, offset: "7" }];
    await transaction.sendOffsets({ consumerGroupId: groupId, topics: [{ topic, partitions }] });
    await transaction.commit();
  });
  const [{ partitions: [found] }] = await connected(kafka().admin(), (admin) => admin.fetchOffsets({ groupId, topics: [topic] }));
  assert.equal(found.offset, "7");
}

async function adminPartitions() {
  const topic = await newTopic(1);
  await connected(kafka().admin(), async (admin) => {
    await admin.createPartitions({ topicPartitions: [{ topic, count: 4 }] });
    const { topics: [described] } = await admin.fetchTopicMetadata({ topics: [topic] });
    assert.equal(described.partitions.length, 4);
  });
}

async function adminConfigs() {
  const name = await newTopic(1, [{ name: "retention.ms", value: "123456" }]);
  await connected(kafka().admin(), async (admin) => {
    const resources = [{ type: ConfigResourceTypes.TOPIC, name }];
    const { resources: [described] } = await admin.describeConfigs({ resources, includeSynonyms: false });
    assert.equal(described.configEntries.find((entry) => entry.configName === "retention.ms").configValue, "123456");
  });
}

async function adminDeleteRecords() {
  const topic = await newTopic();
  await produce(topic, RECORDS.slice(0, 10));
  await connected(kafka().admin(), async (admin) => {
    await admin.fetchTopicOffsets(topic); // it looks for the leader in what it knows, and asks nobody
    await admin.deleteTopicRecords({ topic, partitions: [{ partition: 0, offset: "4" }] });
    const [{ low, high }] = await admin.fetchTopicOffsets(topic);
    assert.deepEqual([low, high], ["4", "10"]);
  });
}

async function adminGroups() {
  const [topic, groupId] = [await newTopic(), fresh("g-")];
  await produce(topic, RECORDS.slice(0, 10));
  await readAll(topic, 10, { groupId });
  await connected(kafka().admin(), async (admin) => {
    assert((await admin.listGroups()).groups.some((group) => group.groupId === groupId));
    assert.equal((await admin.describeGroups([groupId])).groups[0].state, "Empty");
    const [{ partitions: [found] }] = await admin.fetchOffsets({ groupId, topics: [topic] });
    assert.equal(found.offset, "10");
    await admin.deleteGroups([groupId]);
    assert(!(await admin.listGroups()).groups.some((group) => group.groupId === groupId));
  });
}

async function adminCluster() {
  const { brokers } = await connected(kafka().admin(), (admin) => admin.describeCluster());
  assert.deepEqual(brokers.map(({ host, port }) => `${host}:${port}`), [BOOTSTRAP]);
}

async function roundTrip(client) {
  const topic = fresh("s-");
  await produce(topic, [{ value: "v" }], { client });
  assert.deepEqual(values(await readAll(topic, 1, { client })), ["v"]);
}

const ca = () => ({ ca: [fs.readFileSync(given("CA_FILE"))] });
const login = (mechanism, password = given("SASL_PASSWORD")) => ({ mechanism, username: given("SASL_USER"), password });

const CASES = {
  topics,
  "codec-none": () => codec(CompressionTypes.None),
  "codec-gzip": () => codec(CompressionTypes.GZIP),
  "codec-snappy": () => codec(CompressionTypes.Snappy),
  "codec-lz4": () => codec(CompressionTypes.LZ4),
  "codec-zstd": () => codec(CompressionTypes.ZSTD),
  "produce-idempotent": produceIdempotent,
  "group-rebalances": groupRebalances,
  "transaction-committed-and-aborted": transactions,
  "transaction-with-offsets": transactionWithOffsets,
  "admin-partitions": adminPartitions,
  "admin-configs": adminConfigs,
  "admin-delete-records": adminDeleteRecords,
  "admin-groups": adminGroups,
  "admin-cluster": adminCluster,
  tls: () => roundTrip({ brokers: [given("TLS_BOOTSTRAP")], ssl: ca() }),
  "sasl-PLAIN": () => roundTrip({ brokers: [given("SASL_BOOTSTRAP")], sasl: login("plain") }),
  "sasl-SCRAM-SHA-256": () => roundTrip({ brokers: [given("SASL_BOOTSTRAP")], sasl: login("scram-sha-256") }),
  "sasl-SCRAM-SHA-512": () => roundTrip({ brokers: [given("SASL_BOOTSTRAP")], sasl: login("scram-sha-512") }),
  "sasl-over-tls": () => roundTrip({ brokers: [given("SASL_TLS_BOOTSTRAP")], sasl: login("scram-sha-512"), ssl: ca() }),
  "sasl-wrong-password": () =>
    assert.rejects(roundTrip({ brokers: [given("SASL_BOOTSTRAP")], sasl: login("plain", "not it") }), /SASL|authentication/i),
};

async function main() {
  await installCodecs();
  const chosen = process.argv.slice(2);
  for (const [name, run] of Object.entries(CASES)) {
    if (chosen.length && !chosen.includes(name)) continue;
    let timer;
    const late = new Promise((_, reject) => (timer = setTimeout(() => reject(new Error("took too long")), LIMIT_MS)));
    try {
      await Promise.race([run(), late]);
      console.log(`ok ${name}`);
    } catch (error) {
      const notRun = error instanceof NotRun || error.cause instanceof NotRun;
      if (!notRun) process.exitCode = FAILED;
      console.log(`${notRun ? "NOT RUN" : "FAIL"} ${name}: ${String(error.message).split(/\s+/).join(" ").slice(0, 200)}`);
      if (!notRun) console.error(error);
    } finally {
      clearTimeout(timer);
    }
  }
  process.exit();
}

main();
