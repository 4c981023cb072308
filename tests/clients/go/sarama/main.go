// sarama through every client scenario; SARAMA_VERSION fixes the protocol version it speaks.
package main

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"clients/scenario"

	"github.com/IBM/sarama"
)

var codecs = map[string]sarama.CompressionCodec{"none": sarama.CompressionNone,
	"gzip": sarama.CompressionGZIP, "snappy": sarama.CompressionSnappy, "lz4": sarama.CompressionLZ4,
	"zstd": sarama.CompressionZSTD}

func config() *sarama.Config {
	c := sarama.NewConfig()
	c.Version = sarama.MaxVersion
	if name := os.Getenv("SARAMA_VERSION"); name != "" {
		version, err := sarama.ParseKafkaVersion(name)
		scenario.Must(err)
		c.Version = version
	}
	c.Producer.Return.Successes = true
	c.Producer.MaxMessageBytes = 20000000
	c.Producer.RequiredAcks = sarama.WaitForAll
	c.Producer.Partitioner = sarama.NewManualPartitioner
	c.Consumer.Offsets.Initial = sarama.OffsetOldest
	c.Consumer.Offsets.AutoCommit.Enable = false
	c.Consumer.Group.Session.Timeout = 6 * time.Second
	c.Consumer.Group.Heartbeat.Interval = 300 * time.Millisecond
	c.Consumer.Group.Rebalance.Strategy = sarama.NewBalanceStrategyRange()
	return c
}

func addresses() []string { return []string{os.Args[1]} }

func create(topic string, partitions int32) string {
	admin, err := sarama.NewClusterAdmin(addresses(), config())
	scenario.Must(err)
	defer admin.Close()
	scenario.Must(admin.CreateTopic(topic, &sarama.TopicDetail{NumPartitions: partitions, ReplicationFactor: 1}, false))
	return topic
}

func sendWith(c *sarama.Config, topic string, messages ...*sarama.ProducerMessage) {
	producer, err := sarama.NewSyncProducer(addresses(), c)
	scenario.Must(err)
	for _, message := range messages {
		message.Topic = topic
	}
	scenario.Must(producer.SendMessages(messages))
	scenario.Must(producer.Close())
}

func send(topic, codec string, messages ...*sarama.ProducerMessage) {
	c := config()
	c.Producer.Compression = codecs[codec]
	if codec == "zstd" && !c.Version.IsAtLeast(sarama.V2_1_0_0) {
		scenario.Skip("zstd needs protocol version 2.1 and more")
	}
	c.Producer.Flush.Frequency = 20 * time.Millisecond
	sendWith(c, topic, messages...)
}

func messages(values []string) []*sarama.ProducerMessage {
	list := []*sarama.ProducerMessage{}
	for _, value := range values {
		list = append(list, &sarama.ProducerMessage{Value: sarama.StringEncoder(value)})
	}
	return list
}

func read(topic string, partition int32, count int) []*sarama.ConsumerMessage {
	consumer, err := sarama.NewConsumer(addresses(), config())
	scenario.Must(err)
	defer consumer.Close()
	part, err := consumer.ConsumePartition(topic, partition, sarama.OffsetOldest)
	scenario.Must(err)
	defer part.Close()
	got := []*sarama.ConsumerMessage{}
	for len(got) < count {
		select {
		case message := <-part.Messages():
			got = append(got, message)
		case <-time.After(30 * time.Second):
			scenario.Check(false, "%d of %d messages", len(got), count)
		}
	}
	return got
}

func values(got []*sarama.ConsumerMessage) []string {
	list := []string{}
	for _, message := range got {
		list = append(list, string(message.Value))
	}
	return list
}

func produceConsume(args []string) {
	topic := create(args[0], 3)
	want := make([][]string, 3)
	sent := messages(scenario.Numbered("v", 0, 300))
	for i, message := range sent {
		message.Key = sarama.StringEncoder(fmt.Sprintf("k%d", i%7))
		message.Partition = int32(i % 3)
		want[i%3] = append(want[i%3], fmt.Sprintf("v%d", i))
	}
	send(topic, "none", sent...)
	for partition := range int32(3) {
		got := read(topic, partition, 100)
		scenario.Same("order", values(got), want[partition])
		for i, message := range got {
			scenario.Check(message.Offset == int64(i), "offset %d", message.Offset)
		}
	}
}

func compression(args []string) {
	topic, want := create(args[0], 1), scenario.MatrixValues(args[1], 200)
	send(topic, args[1], messages(want)...)
	scenario.Same(args[1], values(read(topic, 0, 200)), want)
}

func sizes(args []string) {
	topic := create(args[0], 1)
	want := []string{"x", string(make([]byte, scenario.Big)), "z"}
	send(topic, "none", messages(want)...)
	scenario.Same("sizes", values(read(topic, 0, 3)), want)
}

func headers(args []string) {
	topic := create(args[0], 1)
	want := []sarama.RecordHeader{{Key: []byte("a"), Value: []byte("1")}, {Key: []byte("a"), Value: []byte("2")},
		{Key: []byte("empty"), Value: []byte{}}, {Key: []byte("\u00fc"), Value: []byte{0, 255}}}
	sent := messages([]string{"v", "w"})
	sent[0].Headers = want
	send(topic, "none", sent...)
	got := read(topic, 0, 2)
	scenario.Check(len(got[0].Headers) == len(want) && len(got[1].Headers) == 0, "%v %v", got[0].Headers, got[1].Headers)
	for i, header := range got[0].Headers {
		scenario.Check(fmt.Sprint(*header) == fmt.Sprint(want[i]), "header %d: %v", i, *header)
	}
}

func nulls(args []string) {
	topic := create(args[0], 1)
	send(topic, "none", &sarama.ProducerMessage{Value: sarama.StringEncoder("v")},
		&sarama.ProducerMessage{Key: sarama.StringEncoder("k")}, &sarama.ProducerMessage{})
	for i, message := range read(topic, 0, 3) {
		scenario.Check((message.Key != nil) == (i == 1) && (message.Value != nil) == (i == 0),
			"record %d: %v %v", i, message.Key, message.Value)
	}
}

func offsetsByTime(args []string) {
	topic := create(args[0], 1)
	sent := []*sarama.ProducerMessage{}
	for i := range int64(10) {
		sent = append(sent, &sarama.ProducerMessage{Value: sarama.StringEncoder("v"),
			Timestamp: time.UnixMilli(scenario.BaseTime + 1000*i)})
	}
	send(topic, "none", sent...)
	client, err := sarama.NewClient(addresses(), config())
	scenario.Must(err)
	defer client.Close()
	for at, want := range map[int64]int64{scenario.BaseTime: 0, scenario.BaseTime + 1: 1, scenario.BaseTime + 5000: 5,
		scenario.BaseTime + 8999: 9, scenario.BaseTime + 9001: -1, sarama.OffsetOldest: 0, sarama.OffsetNewest: 10} {
		found, err := client.GetOffset(topic, 0, at)
		scenario.Must(err)
		scenario.Check(found == want, "at %d: %d, want %d", at, found, want)
	}
}

// member is a consumer in a group; see sarama.ConsumerGroupHandler.
type member struct {
	group  sarama.ConsumerGroup
	lock   sync.Mutex
	owned  int
	got    func(*sarama.ConsumerMessage) bool // false ends the claim
	cancel context.CancelFunc
	done   chan bool
}

func (m *member) set(owned int) { m.lock.Lock(); m.owned = owned; m.lock.Unlock() }
func (m *member) owns() int     { m.lock.Lock(); defer m.lock.Unlock(); return m.owned }

func (m *member) Setup(session sarama.ConsumerGroupSession) error {
	total := 0
	for _, list := range session.Claims() {
		total += len(list)
	}
	m.set(total)
	return nil
}

func (m *member) Cleanup(sarama.ConsumerGroupSession) error { m.set(0); return nil }

func (m *member) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case message := <-claim.Messages():
			if message == nil {
				return nil
			}
			more := m.got(message)
			session.MarkMessage(message, "")
			session.Commit()
			if !more {
				return nil
			}
		case <-session.Context().Done():
			return nil
		}
	}
}

func join(topic, name string, got func(*sarama.ConsumerMessage) bool) *member {
	group, err := sarama.NewConsumerGroup(addresses(), name, config())
	scenario.Must(err)
	ctx, cancel := context.WithCancel(context.Background())
	m := &member{group: group, got: got, cancel: cancel, done: make(chan bool)}
	go func() {
		defer close(m.done)
		for ctx.Err() == nil {
			if err := group.Consume(ctx, []string{topic}, m); err != nil && ctx.Err() == nil {
				fmt.Println("consume:", err)
			}
		}
	}()
	return m
}

func (m *member) leave() {
	m.cancel()
	<-m.done
	scenario.Must(m.group.Close())
}

func rebalance(args []string) {
	topic := create(args[0], 4)
	var lock sync.Mutex
	got := []string{}
	seen := func(m *sarama.ConsumerMessage) bool {
		lock.Lock()
		defer lock.Unlock()
		got = append(got, string(m.Value))
		return true
	}
	first := join(topic, args[0], seen)
	scenario.Until("the first owns all", func() bool { return first.owns() == 4 })
	second := join(topic, args[0], seen)
	scenario.Until("each owns half", func() bool { return first.owns() == 2 && second.owns() == 2 })
	for partition := range int32(4) {
		list := messages(scenario.Numbered(fmt.Sprintf("%d-", partition), 0, 10))
		for _, message := range list {
			message.Partition = partition
		}
		send(topic, "none", list...)
	}
	scenario.Until("40 records", func() bool { lock.Lock(); defer lock.Unlock(); return len(got) >= 40 })
	second.leave()
	scenario.Until("the first owns all again", func() bool { return first.owns() == 4 })
	first.leave()
	scenario.Once(got, 40)
}

// groupTake reads count messages in a group, commits each, and leaves.
func groupTake(tag string, count int) []string {
	got := []string{}
	enough := make(chan bool)
	m := join(tag, tag, func(message *sarama.ConsumerMessage) bool {
		got = append(got, string(message.Value))
		if len(got) == count {
			close(enough)
		}
		return len(got) < count
	})
	select {
	case <-enough:
	case <-time.After(30 * time.Second):
		scenario.Check(false, "fewer than %d messages", count)
	}
	m.leave()
	return got
}

func committedWrite(args []string) {
	topic := create(args[0], 1)
	send(topic, "none", messages(scenario.Numbered("v", 0, 20))...)
	scenario.Same("first", groupTake(topic, 7), scenario.Numbered("v", 0, 7))
}

func committedRead(args []string) {
	admin, err := sarama.NewClusterAdmin(addresses(), config())
	scenario.Must(err)
	answer, err := admin.ListConsumerGroupOffsets(args[0], map[string][]int32{args[0]: {0}})
	scenario.Must(err)
	at := answer.GetBlock(args[0], 0)
	scenario.Check(at != nil && at.Err == sarama.ErrNoError && at.Offset == 7, "committed: %+v", at)
	scenario.Must(admin.Close())
	scenario.Same("rest", groupTake(args[0], 13), scenario.Numbered("v", 7, 20))
}

// idempotent: an idempotent producer's many small batches, as case P2 asks.
func idempotent(args []string) {
	topic := create(args[0], 1)
	c := config()
	c.Producer.Idempotent, c.Net.MaxOpenRequests = true, 1
	want := scenario.Numbered("v", 0, 10000)
	sendWith(c, topic, messages(want)...)
	scenario.Same("idempotent", values(read(topic, 0, 10000)), want)
}

// describeConfigs: ListTopics asks for the topics' configs too.
func describeConfigs(a sarama.ClusterAdmin, topic string) {
	topics, err := a.ListTopics()
	scenario.Must(err)
	scenario.Check(topics[topic].NumPartitions == 2, "ListTopics: %+v", topics[topic])
	entries, err := a.DescribeConfig(sarama.ConfigResource{Type: sarama.TopicResource, Name: topic,
		ConfigNames: []string{"retention.ms", "cleanup.policy"}})
	scenario.Must(err)
	scenario.Check(len(entries) == 2, "DescribeConfig: %+v", entries)
}

// admin: the calls of case H4 beyond producing and consuming.
func admin(args []string) {
	topic := create(args[0], 2)
	a, err := sarama.NewClusterAdmin(addresses(), config())
	scenario.Must(err)
	if config().Version.IsAtLeast(sarama.V1_1_0_0) { // DescribeConfigs v0 is gone since Kafka 4
		describeConfigs(a, topic)
	}
	scenario.Must(a.CreatePartitions(topic, 3, nil, false))
	described, err := a.DescribeTopics([]string{topic})
	scenario.Must(err)
	scenario.Check(len(described[0].Partitions) == 3, "DescribeTopics: %+v", described[0])
	_, _, err = a.DescribeCluster()
	scenario.Must(err)
	scenario.Must(a.DeleteTopic(topic))
	scenario.Must(a.Close())
}

func write(args []string) {
	send(args[0], args[1], messages(scenario.MatrixValues(args[1], 50))...)
}

func readTopics(args []string) {
	for _, topic := range args[1:] {
		if scenario.Codec(topic) == "zstd" && !config().Version.IsAtLeast(sarama.V2_1_0_0) {
			continue
		}
		scenario.Same(topic, values(read(topic, 0, 50)), scenario.MatrixValues(scenario.Codec(topic), 50))
	}
}

func main() {
	scenario.Main(map[string]func([]string){
		"produce_consume": produceConsume, "compression": compression, "sizes": sizes,
		"headers": headers, "nulls": nulls, "offsets_by_time": offsetsByTime, "rebalance": rebalance,
		"committed_write": committedWrite, "committed_read": committedRead, "write": write,
		"read": readTopics, "idempotent": idempotent, "admin": admin,
	})
}
