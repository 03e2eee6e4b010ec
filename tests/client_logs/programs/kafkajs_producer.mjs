// kafkajs with its own console logger, pino or winston, as its documentation has them.
import { Kafka, logLevel, Partitioners } from 'kafkajs';
import pino from 'pino';
import winston from 'winston';

const [layout, , topic, given] = process.argv.slice(2);
const pinoLog = pino({ level: 'info' }, pino.destination({ sync: true }));
const winstonLog = winston.createLogger({
  format: winston.format.combine(winston.format.timestamp(), winston.format.errors({ stack: true }), winston.format.json()),
  transports: [new winston.transports.Console()],
});
const NAMES = { [logLevel.ERROR]: 'error', [logLevel.WARN]: 'warn', [logLevel.INFO]: 'info', [logLevel.DEBUG]: 'debug' };
const creators = {
  default: undefined,
  pino: () => ({ namespace, level, log: { message, ...extra } }) =>
    pinoLog[NAMES[level]]({ namespace, ...extra }, message),
  winston: () => ({ namespace, level, log: { message, ...extra } }) =>
    winstonLog.log({ level: NAMES[level], message: namespace ? `[${namespace}] ${message}` : message, ...extra }),
};
const failed = {
  default: (what, error) => console.error(what, error),
  pino: (what, error) => pinoLog.error(error, what),
  winston: (what, error) => winstonLog.error(what, error),
}[layout];

for (const { name, port, transactional } of JSON.parse(given)) {
  process.stdout.write(`=== ${name}\n`);
  const kafka = new Kafka({
    clientId: 'orders-app', brokers: [`127.0.0.1:${port}`], requestTimeout: 1500, logLevel: logLevel.INFO,
    ...(creators[layout] && { logCreator: creators[layout] }),
  });
  const producer = kafka.producer({
    idempotent: true, maxInFlightRequests: 1, createPartitioner: Partitioners.LegacyPartitioner, retry: { retries: 2, initialRetryTime: 50 },
    ...(transactional && { transactionalId: 'payments', transactionTimeout: 3000 }),
  });
  try {
    await producer.connect();
    const sender = transactional ? await producer.transaction() : producer;
    for (const key of ['0', '1']) {
      try {
        await sender.send({ topic, messages: [{ key, value: 'x', partition: 0 }] });
      } catch (error) {
        failed('send failed', error);
      }
    }
    if (transactional) await sender.commit();
  } catch (error) {
    failed('producer failed', error);
  }
  await producer.disconnect().catch((error) => failed('disconnect failed', error));
}
process.exit(0);
