// A walk of kafka-node: `kafka_node.js BOOTSTRAP TOPIC CLIENT_ID`. NODE_PATH says which release.
"use strict";

const assert = require("node:assert/strict");
const { ConsumerGroup, KafkaClient, Producer } = require("kafka-node");

const [kafkaHost, topic, clientId] = process.argv.slice(2);
const VALUES = Array.from({ length: 20 }, (_, number) => `${number}`);
const GZIP = 1;

function called(work) {
  return new Promise((resolve, reject) => work((error, result) => (error ? reject(error) : resolve(result))));
}

async function main() {
  const client = new KafkaClient({ kafkaHost, clientId, connectRetryOptions: { retries: 2 } });
  await new Promise((resolve, reject) => client.once("ready", resolve).once("error", reject));
  const producer = new Producer(client, { requireAcks: 1 });
  await called((done) => producer.send([{ topic, messages: VALUES, attributes: GZIP }], done));
  console.log("ok produce");

  const options = { kafkaHost, clientId, groupId: "g-" + topic, fromOffset: "earliest", autoCommit: false };
  const consumer = new ConsumerGroup(options, [topic]);
  const found = [];
  await new Promise((resolve, reject) => {
    consumer.on("error", reject);
    consumer.on("message", ({ value }) => {
      found.push(value);
      if (found.length === VALUES.length) resolve();
    });
  });
  await called((done) => consumer.commit(true, done));
  assert.deepEqual(found, VALUES);
  console.log("ok consume");

  await called((done) => client.createTopics([{ topic: topic + "-made", partitions: 1, replicationFactor: 1 }], done));
  console.log("ok admin");
}

main().then(
  () => process.exit(0),
  (error) => {
    console.error(error);
    process.exit(1);
  },
);
