// librdkafka below node-rdkafka: its log on standard error, or as events in pino; delivery reports and errors as its README handles them.
import Kafka from 'node-rdkafka';
import pino from 'pino';

const [layout, , topic, given] = process.argv.slice(2);
const log = pino({ level: 'info' }, pino.destination({ sync: true }));
const failed = layout === 'node' ? (what, error) => console.error(what, error) : (what, error) => log.error(error, what);
const called = (producer, name, ...given) =>
  new Promise((resolve, reject) => producer[name](...given, (error, value) => (error ? reject(error) : resolve(value))));

for (const { name, port, transactional } of JSON.parse(given)) {
  process.stdout.write(`=== ${name}\n`);
  const producer = new Kafka.Producer({
    'metadata.broker.list': `127.0.0.1:${port}`, 'client.id': 'orders-app', 'enable.idempotence': true, 'linger.ms': 0, dr_cb: true,
    'message.timeout.ms': 3000, 'socket.timeout.ms': 1500, 'retry.backoff.ms': 50, ...(layout !== 'node' && { event_cb: true }),
    ...(transactional && { 'transactional.id': 'payments', 'transaction.timeout.ms': 3000 }),
  });
  if (layout !== 'node') producer.on('event.log', (event) => log.warn(event));
  producer.on('event.error', (error) => failed('Error from producer', error));
  producer.on('delivery-report', (error) => error && failed('delivery failed', error));
  producer.setPollInterval(50);
  try {
    await called(producer, 'connect', {});
    if (transactional) {
      await called(producer, 'initTransactions', 4000);
      await called(producer, 'beginTransaction');
    }
    for (const key of ['0', '1']) {
      try {
        producer.produce(topic, 0, Buffer.from('x'), key);
        await called(producer, 'flush', 8000);
      } catch (error) {
        failed('send failed', error);
      }
    }
    if (transactional) await called(producer, 'commitTransaction', 4000);
  } catch (error) {
    failed('producer failed', error);
  }
  await Promise.race([called(producer, 'disconnect').catch((error) => failed('disconnect failed', error)), new Promise((end) => setTimeout(end, 2000))]);
}
process.exit(0);
