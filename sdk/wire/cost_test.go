package wire

import (
	"bytes"
	"errors"
	"runtime"
	"strings"
	"testing"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/limit"
	"github.com/origami-gemm/origami/core/selector"
	"github.com/origami-gemm/origami/internal/testing/must"
	pb "github.com/origami-gemm/origami/sdk/proto/origami/plugin/v1"
)

// answers are the messages that a plugin sends.
var answers = []proto.Message{
	&pb.Json{}, &pb.OpenResponse{}, &pb.CandidatesResponse{}, &pb.EstimateResponse{},
	&pb.TermsResponse{}, &pb.MappingResponse{}, &pb.RankResponse{}, &pb.EstimateWithResponse{},
	&pb.Diagnostic{},
	&pb.OpenRequest{}, &pb.RankRequest{}, &pb.EstimateRequest{}, // and some that it receives
}

// allocated returns how many bytes decoding a message allocates in all. Other goroutines may allocate meanwhile.
func allocated(data []byte, m proto.Message) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_ = proto.Unmarshal(data, m)
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// checkCost checks that decoding allocates no more than was reckoned. The sum of all allocations is larger than what is
// in use at any time, as append allocates again and again: by up to twice.
func checkCost(t *testing.T, data []byte, m proto.Message) {
	t.Helper()
	reckoned, err := cost(data, m, 64<<20)
	if err != nil {
		must.Need(t, errors.Is(err, errTooCostly) || strings.Contains(err.Error(), "within each other") ||
			proto.Unmarshal(data, m) != nil, "%T: %v, and it can be decoded", m, err)
		return
	}
	var got uint64
	for range 5 {
		if got = allocated(data, m.ProtoReflect().New().Interface()); got <= uint64(2*reckoned)+4<<10 {
			return
		}
	}
	t.Errorf("%T of %d bytes allocates %d bytes, reckoned were %d", m, len(data), got, reckoned)
}

// repeated is a message with a record n times.
func repeated(record []byte, n int) []byte { return bytes.Repeat(record, n) }

// record is a field of a message.
func record(number int, content ...byte) []byte {
	b := protowire.AppendTag(nil, protowire.Number(number), protowire.BytesType)
	return protowire.AppendBytes(b, content)
}

// Small records that become large are reckoned for what they become, in every field of every answer.
func TestCostOfSmallRecords(t *testing.T) {
	const n = 2000
	for _, m := range answers {
		fields := m.ProtoReflect().Descriptor().Fields()
		numbers := []int{15, 10_000}
		for i := range fields.Len() {
			numbers = append(numbers, int(fields.Get(i).Number()))
		}
		for _, number := range numbers {
			for _, content := range [][]byte{nil, {0}, {10, 0}, {10, 0, 18, 0, 26, 0}, {8, 1, 16, 1}, make([]byte, 8)} {
				checkCost(t, repeated(record(number, content...), n), m)
			}
			varint := protowire.AppendVarint(protowire.AppendTag(nil, protowire.Number(number), protowire.VarintType), 1)
			checkCost(t, repeated(varint, n), m)
			checkCost(t, append(record(number, make([]byte, n)...), repeated(record(number, 1), 3)...), m)
			group := protowire.AppendTag(nil, protowire.Number(number), protowire.StartGroupType)
			group = protowire.AppendTag(group, protowire.Number(number), protowire.EndGroupType)
			checkCost(t, repeated(group, n), m)
		}
	}
}

// A message that would take gigabytes is refused before it is decoded.
func TestCostlyMessagesAreNotDecoded(t *testing.T) {
	config := record(10) // an empty axis
	for name, c := range map[string]struct {
		m    proto.Message
		data []byte
	}{
		"empty rankings":     {&pb.RankResponse{}, repeated(record(1), MaxAnswer/2)},
		"empty counts":       {&pb.RankResponse{}, record(1, repeated(record(8), MaxAnswer/2-8)...)},
		"empty axes":         {&pb.CandidatesResponse{}, record(1, repeated(config, MaxAnswer/2-8)...)},
		"empty details":      {&pb.CandidatesResponse{}, repeated(record(6), MaxAnswer/2)},
		"small numbers":      {&pb.CandidatesResponse{}, record(3, make([]byte, MaxAnswer-8)...)},
		"unknown text":       {&pb.RankResponse{}, record(999, make([]byte, MaxAnswer)...)},
		"a list twice":       {&pb.CandidatesResponse{}, repeated(record(3, make([]byte, MaxAnswer/5)...), 2)},
		"a message in parts": {&pb.CandidatesResponse{}, repeated(record(1, record(1, 0)...), MaxAnswer/5)},
		"a list in parts":    {&pb.EstimateResponse{}, repeated(record(3, 0), MaxAnswer/3)},
	} {
		codec := &codec{CodecV2: protobuf, most: MaxAnswerMemory}
		m := c.m.ProtoReflect().New().Interface()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := codec.Unmarshal(mem.BufferSlice{mem.SliceBuffer(c.data)}, m)
		runtime.ReadMemStats(&after)
		if !IsOversize(err) || codec.refused.Load() == nil || proto.Size(m) != 0 {
			t.Errorf("%s: got %v, and a message of %d bytes", name, err, proto.Size(m))
		}
		used := after.TotalAlloc - before.TotalAlloc
		must.That(t, used <= 1<<20, "%s: it took %v", name, limit.Size(used))
	}
}

// The largest answers that a plugin gives within the limits of its requests are taken.
func TestLargestAnswers(t *testing.T) {
	config := gemm.Config{BlockM: 256, BlockN: 256, BlockK: 128, GroupM: 8, NumWarps: 16, NumStages: 4, SplitK: 8,
		Kernel: "triton"}
	axis := gemm.Axis{Name: "cluster", Type: gemm.Enumeration, Values: []string{"1x1", "2x1"}, Default: "1x1"}
	must.Do(t, axis.Set(&config, "2x1"))
	rejected, usable := &arch.Candidates{}, &arch.Candidates{}
	ranking := selector.Result{Feasible: arch.MaxSpace}
	for i := range arch.MaxSpace {
		rejected.Rejected = append(rejected.Rejected, arch.Rejection{Config: config, Position: i, Reason: "shared_memory",
			Detail: "it needs 294912 B of shared memory, an SM has 232448 B"})
		usable.Configs = append(usable.Configs, config)
		ranking.Entries = append(ranking.Entries, selector.Entry{Index: i, Config: config,
			Estimate: arch.Estimate{Cycles: 5}, Mapping: arch.Mapping{XCDs: 8, Chunk: 2}})
	}
	values := make([]float64, max(valuesPerCall, configsPerCall))
	for name, m := range map[string]proto.Message{
		"rejected": toCandidates(rejected), "usable": toCandidates(usable), "terms": &pb.TermsResponse{Values: values},
		"ranking":   &pb.RankResponse{Rankings: []*pb.Ranking{toRanking(&ranking)}},
		"estimates": toEstimates(make([]arch.Estimate, configsPerCall)),
	} {
		data := must.Get(proto.Marshal(m))(t)
		reckoned, err := cost(data, m, MaxAnswerMemory)
		must.That(t, err == nil && len(data) <= MaxAnswer, "%s: %v, %v", name, limit.Size(len(data)), err)
		t.Logf("%s: %d bytes, reckoned %d", name, len(data), reckoned)
		checkCost(t, data, m)
	}
}

// Whatever is sent, it is reckoned for at least what decoding it takes.
func FuzzCost(f *testing.F) {
	for kind, m := range answers {
		fill(m.ProtoReflect(), 3)
		data := must.Get(proto.Marshal(m))(f)
		f.Add(uint8(kind), uint16(0), data)
		f.Add(uint8(kind), uint16(999), record(1, record(1)...))
	}
	f.Add(uint8(3), uint16(119), []byte(" \"100000000001000000000000000000000"))                   // a list in parts
	f.Add(uint8(2), uint16(43), []byte("10000000000\x12!2\x1a000000000000000000000000002\x01000")) // a message in parts
	f.Fuzz(func(t *testing.T, kind uint8, more uint16, data []byte) {
		data = repeated(data, 1+int(more)%1000)
		if len(data) > 1<<20 {
			return
		}
		m := answers[int(kind)%len(answers)]
		checkCost(t, data, m)
		if _, err := cost(data, m, 1000); err == nil {
			again, err := cost(data, m, 64<<20)
			must.That(t, err == nil && again <= 1000, "%d passes as 1000, %v", again, err)
		} else if most, whole := cost(data, m, 64<<20); whole == nil && most <= 1000 {
			t.Errorf("%d is refused as more than 1000: %v", most, err)
		}
	})
}

// fill sets every field of a message, to a depth.
func fill(m protoreflect.Message, depth int) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		d := fields.Get(i)
		switch {
		case d.IsMap():
			continue
		case d.Message() != nil && depth == 0:
			continue
		case d.Message() != nil && d.IsList():
			fill(m.Mutable(d).List().AppendMutable().Message(), depth-1)
		case d.Message() != nil:
			fill(m.Mutable(d).Message(), depth-1)
		case d.IsList():
			l := m.Mutable(d).List()
			l.Append(l.NewElement())
		}
	}
}
