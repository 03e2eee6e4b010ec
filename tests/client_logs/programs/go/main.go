// franz-go through the loggers its plugins are for, sarama with its own, and librdkafka below confluent-kafka-go.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/IBM/sarama"
	"github.com/confluentinc/confluent-kafka-go/v2/kafka"
	"github.com/rs/zerolog"
	"github.com/sirupsen/logrus"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/plugin/kslog"
	"github.com/twmb/franz-go/plugin/kzap"
	"go.uber.org/zap"
)

type play struct {
	Name          string `json:"name"`
	Port          int    `json:"port"`
	Transactional bool   `json:"transactional"`
}

// failed is how the application logs an error.
type failed func(what string, err error)

type logrusLogger struct{ to *logrus.Logger }

func (l logrusLogger) Level() kgo.LogLevel { return kgo.LogLevelInfo }
func (l logrusLogger) Log(level kgo.LogLevel, msg string, keyvals ...any) {
	fields := logrus.Fields{}
	for i := 0; i < len(keyvals); i += 2 {
		fields[keyvals[i].(string)] = keyvals[i+1]
	}
	levels := map[kgo.LogLevel]logrus.Level{kgo.LogLevelError: logrus.ErrorLevel, kgo.LogLevelWarn: logrus.WarnLevel}
	to, known := levels[level]
	if !known {
		to = logrus.InfoLevel
	}
	l.to.WithFields(fields).Log(to, msg)
}

type zerologLogger struct{ to zerolog.Logger }

func (l zerologLogger) Level() kgo.LogLevel { return kgo.LogLevelInfo }
func (l zerologLogger) Log(level kgo.LogLevel, msg string, keyvals ...any) {
	events := map[kgo.LogLevel]*zerolog.Event{kgo.LogLevelError: l.to.Error(), kgo.LogLevelWarn: l.to.Warn()}
	event, known := events[level]
	if !known {
		event = l.to.Info()
	}
	event.Fields(keyvals).Msg(msg)
}

func loggers(layout string) (kgo.Logger, failed) {
	switch layout {
	case "kgo":
		return kgo.BasicLogger(os.Stdout, kgo.LogLevelInfo, nil), func(what string, err error) { fmt.Printf("%s: %v\n", what, err) }
	case "zap-json", "zap-console":
		made, _ := zap.NewProduction()
		if layout == "zap-console" {
			made, _ = zap.NewDevelopment(zap.IncreaseLevel(zap.InfoLevel))
		}
		return kzap.New(made), func(what string, err error) { made.Error(what, zap.Error(err)) }
	case "slog-text", "slog-json":
		made := slog.New(slog.NewTextHandler(os.Stdout, nil))
		if layout == "slog-json" {
			made = slog.New(slog.NewJSONHandler(os.Stdout, nil))
		}
		return kslog.New(made), func(what string, err error) { made.Error(what, "err", err) }
	case "logrus-text", "logrus-json":
		made := logrus.New()
		if layout == "logrus-json" {
			made.SetFormatter(&logrus.JSONFormatter{})
		}
		return logrusLogger{made}, func(what string, err error) { made.WithError(err).Error(what) }
	case "zerolog-json", "zerolog-console":
		made := zerolog.New(os.Stdout).With().Timestamp().Logger()
		if layout == "zerolog-console" {
			made = zerolog.New(zerolog.ConsoleWriter{Out: os.Stdout, NoColor: true}).With().Timestamp().Logger()
		}
		return zerologLogger{made}, func(what string, err error) { made.Error().Err(err).Msg(what) }
	}
	panic(layout)
}

func franz(one play, topic string, logger kgo.Logger, fails failed) {
	options := []kgo.Opt{
		kgo.SeedBrokers(fmt.Sprintf("127.0.0.1:%d", one.Port)), kgo.ClientID("orders-app"), kgo.WithLogger(logger),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProduceRequestTimeout(time.Second), kgo.RecordDeliveryTimeout(4 * time.Second),
		kgo.RequestTimeoutOverhead(time.Second), kgo.RetryBackoffFn(func(int) time.Duration { return 50 * time.Millisecond }), kgo.RecordRetries(2),
	}
	if one.Transactional {
		options = append(options, kgo.TransactionalID("payments"))
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		fails("producer failed", err)
		return
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Second)
	defer cancel()
	if one.Transactional {
		if err := client.BeginTransaction(); err != nil {
			fails("begin failed", err)
		}
	}
	for key := range 2 {
		record := &kgo.Record{Topic: topic, Key: fmt.Append(nil, key), Value: []byte("x")}
		if err := client.ProduceSync(ctx, record).FirstErr(); err != nil {
			fails("unable to produce", err)
		}
	}
	if one.Transactional {
		if err := client.EndTransaction(ctx, kgo.TryCommit); err != nil {
			fails("commit failed", err)
		}
	}
}

func saramas(one play, topic string) {
	config := sarama.NewConfig()
	config.ClientID = "orders-app"
	config.Version = sarama.V2_8_0_0
	config.Producer.Idempotent = true
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Net.MaxOpenRequests = 1
	config.Net.ReadTimeout = 1500 * time.Millisecond
	config.Producer.Retry.Max = 1
	config.Producer.Retry.Backoff = 50 * time.Millisecond
	config.Producer.Return.Successes = true
	config.Producer.Partitioner = sarama.NewManualPartitioner
	if one.Transactional {
		config.Producer.Transaction.ID = "payments"
	}
	producer, err := sarama.NewSyncProducer([]string{fmt.Sprintf("127.0.0.1:%d", one.Port)}, config)
	if err != nil {
		log.Printf("producer failed: %v", err)
		return
	}
	defer producer.Close()
	if one.Transactional {
		if err := producer.BeginTxn(); err != nil {
			log.Printf("begin failed: %v", err)
		}
	}
	for key := range 2 {
		message := &sarama.ProducerMessage{Topic: topic, Key: sarama.StringEncoder(fmt.Sprint(key)), Value: sarama.StringEncoder("x")}
		if _, _, err := producer.SendMessage(message); err != nil {
			log.Printf("send failed: %v", err)
			log.Print(&sarama.ProducerError{Msg: message, Err: err})
		}
	}
	if one.Transactional {
		if err := producer.CommitTxn(); err != nil {
			log.Printf("commit failed: %v", err)
		}
	}
}

func confluent(one play, topic string, fails failed) {
	config := kafka.ConfigMap{
		"bootstrap.servers": fmt.Sprintf("127.0.0.1:%d", one.Port), "client.id": "orders-app", "enable.idempotence": true, "linger.ms": 0,
		"message.timeout.ms": 3000, "socket.timeout.ms": 1500, "retry.backoff.ms": 50, "retry.backoff.max.ms": 50, "go.logs.channel.enable": true,
	}
	if one.Transactional {
		config["transactional.id"] = "payments"
		config["transaction.timeout.ms"] = 3000
	}
	producer, err := kafka.NewProducer(&config)
	if err != nil {
		fails("producer failed", err)
		return
	}
	defer producer.Close()
	go func() {
		for event := range producer.Logs() {
			fmt.Println(event)
		}
	}()
	go func() {
		for event := range producer.Events() {
			if err, is := event.(kafka.Error); is {
				log.Printf("Error: %v", err)
			}
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if one.Transactional {
		if err := errors.Join(producer.InitTransactions(ctx), producer.BeginTransaction()); err != nil {
			fails("transaction failed", err)
			return
		}
	}
	for key := range 2 {
		delivered := make(chan kafka.Event, 1)
		at := kafka.TopicPartition{Topic: &topic, Partition: 0}
		if err := producer.Produce(&kafka.Message{TopicPartition: at, Key: fmt.Append(nil, key), Value: []byte("x")}, delivered); err != nil {
			fails("produce failed", err)
			continue
		}
		message := (<-delivered).(*kafka.Message)
		if message.TopicPartition.Error != nil {
			log.Printf("Delivery failed: %v", message.TopicPartition)
			fails("delivery failed", message.TopicPartition.Error)
		}
	}
	if one.Transactional {
		if err := producer.CommitTransaction(ctx); err != nil {
			fails("commit failed", err)
		}
	}
}

func main() {
	layout, topic := os.Args[1], os.Args[3]
	var plays []play
	if err := json.NewDecoder(strings.NewReader(os.Args[4])).Decode(&plays); err != nil {
		panic(err)
	}
	sarama.Logger = log.New(os.Stdout, "[sarama] ", log.LstdFlags)
	for _, one := range plays {
		fmt.Printf("=== %s\n", one.Name)
		switch layout {
		case "sarama":
			saramas(one, topic)
		case "confluent":
			_, fails := loggers("slog-text")
			confluent(one, topic, fails)
		default:
			logger, fails := loggers(layout)
			franz(one, topic, logger, fails)
		}
	}
}
