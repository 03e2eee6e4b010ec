package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/Shopify/sarama"
)

// Sends records the broker refuses, and now and then one that it takes; prints what became of the latter.
func main() {
	config := sarama.NewConfig()
	config.Version = sarama.V2_0_0_0
	config.Producer.Idempotent = true
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Producer.Return.Successes = true
	config.Producer.Retry.Max = 1
	config.Net.MaxOpenRequests = 1
	producer, err := sarama.NewSyncProducer([]string{os.Args[1]}, config)
	if err != nil {
		panic(err)
	}
	count, _ := strconv.Atoi(os.Args[2])
	every, _ := strconv.Atoi(os.Args[3])
	for n := 0; n <= count; n++ {
		value := strings.Repeat("x", 500)
		if n%every == 0 || n == count {
			value = strconv.Itoa(n)
		}
		_, offset, err := producer.SendMessage(&sarama.ProducerMessage{Topic: "orders", Value: sarama.StringEncoder(value)})
		if len(value) < 500 {
			fmt.Println(n, offset, err)
		}
	}
}
