// A walk of kafkajs: `kafkajs.js BOOTSTRAP TOPIC CLIENT_ID`. NODE_PATH says which release.
"use strict";

const assert = require("node:assert/strict");
const { CompressionTypes, Kafka, logLevel } = require("kafkajs");

const [bootstrap, topic, clientId] = process.argv.slice(2);
const VALUES = Array.from({ length: 20 }, (_, number) => `${number}`);

async function main() {
  const kafka = new Kafka({ brokers: [bootstrap], clientId, logLevel: logLevel.NOTHING, retry: { retries: 2 } });
  const producer = kafka.producer();
  await producer.connect();
  await producer.send({ topic, compression: CompressionTypes.GZIP, messages: VALUES.map((value) => ({ value })) });
  await producer.disconnect();
  console.log("ok produce");

  const consumer = kafka.consumer({ groupId: "g-" + topic });
  await consumer.connect();
  await consumer.subscribe({ topic, fromBeginning: true });
  const found = [];
  await new Promise((resolve, reject) => {
    consumer.on(consumer.events.CRASH, ({ payload }) => reject(payload.error));
    const eachMessage = async ({ message }) => {
      found.push(String(message.value));
      if (found.length === VALUES.length) resolve();
    };
    consumer.run({ eachMessage }).catch(reject);
  });
  await consumer.disconnect(); // which commits
  assert.deepEqual(found, VALUES);
  console.log("ok consume");

  const admin = kafka.admin();
  await admin.connect();
  await admin.createTopics({ topics: [{ topic: topic + "-made", numPartitions: 1, replicationFactor: 1 }] });
  await admin.disconnect();
  console.log("ok admin");
}

main().then(
  () => process.exit(0),
  (error) => {
    console.error(error);
    process.exit(1);
  },
);
