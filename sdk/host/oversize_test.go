package host_test

import (
	"context"
	"encoding/binary"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/limit"
	"github.com/origami-gemm/origami/core/selector"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/sdk/host"
	"github.com/origami-gemm/origami/sdk/wire"
)

// field returns a field of bytes of a message.
func field(number int, content string) string {
	b := binary.AppendUvarint(nil, uint64(number)<<3|2)
	return string(binary.AppendUvarint(b, uint64(len(content)))) + content
}

// costly are answers that are small on the wire, or just not too large, and would take gigabytes.
var costly = map[string]struct {
	call   string
	answer repeated
}{
	"rankings":           {"Rank", repeated{field(1, ""), wire.MaxAnswer / 2}},
	"counts in ranking":  {"Rank", repeated{field(1, strings.Repeat(field(8, ""), 1<<20)), 15}},
	"a list in parts":    {"Estimate", repeated{field(3, "\x00"), 1 << 20}},
	"unknown fields":     {"Rank", repeated{field(99, strings.Repeat("x", 1<<20)), 31}},
	"axes":               {"Candidates", repeated{field(1, strings.Repeat(field(10, ""), 1<<20)), 15}},
	"details":            {"Candidates", repeated{field(6, ""), wire.MaxAnswer / 2}},
	"numbers":            {"Candidates", repeated{field(3, strings.Repeat("\x01", 1<<20)), 31}},
	"levels":             {"Open", repeated{field(3, ""), wire.MaxShortAnswer / 2}},
	"a long description": {"Open", repeated{field(1, ""), wire.MaxShortAnswer/2 + 1}},
	"too many bytes":     {"Rank", repeated{field(1, ""), wire.MaxAnswer/2 + 1}},
}

// used returns how much memory this process allocates while do runs.
func used(do func()) limit.Size {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return limit.Size(after.TotalAlloc - before.TotalAlloc)
}

// An answer costs the host no more memory than its limits and no more time than the call has, and is an error that
// names the plugin.
func TestCostlyAnswersAreRefused(t *testing.T) {
	leavesNothing(t)
	const most = 8 * wire.MaxAnswer // with everything that is freed at once
	b := newBench(t, forger, host.Options{})
	defer b.close(t)
	for name, c := range costly {
		must.Do(t, os.WriteFile(b.file(costlyFile), []byte(name), 0o600))
		var err error
		begin := time.Now()
		size := used(func() {
			var a arch.Architecture
			if err = b.arm("", ""); err == nil {
				a, err = b.host.Open(t.Context(), arch.OpenRequest{Arch: forger})
			}
			if err == nil {
				err = b.arm(c.call, costlyAnswer.name)
			}
			if err != nil {
				return
			}
			switch c.call {
			case "Rank":
				_, err = rank(t.Context(), a)
			case "Open":
				_, err = b.host.Open(t.Context(), arch.OpenRequest{Arch: forger, Device: "large"})
			default:
				err = calls[c.call](t.Context(), a)
			}
		})
		took := time.Since(begin)
		t.Logf("%s: %d MiB, %v, %v", name, size>>20, took.Round(time.Millisecond), err)
		if took > 25*time.Second { // decoding is not interrupted
			t.Errorf("%s: it took %v", name, took)
		}
		if size > most {
			t.Errorf("%s: the host allocated %d MiB, more than %v", name, size>>20, limit.Size(most))
		}
		if diag.KindOf(err) != diag.Plugin || !strings.HasPrefix(err.Error(), "plugin "+forger+": "+c.call) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// A batch whose answer would be too large is asked for in parts.
func TestBatchesFitIntoAnswers(t *testing.T) {
	h := hostOf(t, host.Options{}, "big")
	a := open(t, h, arch.OpenRequest{Arch: "big"})
	request := selector.Request{}
	for i := range 9 {
		request.Problems = append(request.Problems, problem)
		request.Problems[i].M += i
	}
	results, err := selector.Rank(t.Context(), a, request)
	if err != nil || len(results) != len(request.Problems) {
		t.Fatalf("%d results, %v", len(results), err)
	}
	for i, r := range results {
		if r.Err != nil || len(r.Entries) < 30_000 {
			t.Errorf("%s: %d entries, %v", request.Problems[i], len(r.Entries), r.Err)
		}
	}
}

// What go-plugin's own streams bring is refused or bounded, and nothing is lost of a plugin's output.
func TestStreamsAreBounded(t *testing.T) {
	leavesNothing(t)
	b := newBench(t, forger, host.Options{})
	defer b.close(t)
	must.Do(t, os.WriteFile(b.file(floodFile), nil, 0o600))
	size := used(func() {
		must.Do(t, b.open(t.Context()))
		if !eventually(func() bool { return len(b.lines(floodedFile)) > 0 }) {
			t.Error("the flood did not end")
		}
		if _, err := rank(t.Context(), b.architecture); err != nil {
			t.Error(err)
		}
	})
	if size > 32<<20 {
		t.Errorf("the host allocated %d MiB", size>>20)
	}
	for _, stream := range b.lines(floodedFile) {
		if strings.Contains(stream, "Broker") {
			t.Errorf("the host opened %s", stream)
		}
	}
}

// A compressed message is refused: it could become anything.
func TestCompressionIsRefused(t *testing.T) {
	b := newBench(t, forger, host.Options{})
	defer b.close(t)
	must.Do(t, os.WriteFile(b.file(compressFile), nil, 0o600))
	wantFault(t, b.open(t.Context()), forger, host.FaultStart, "gzip")
}

const (
	compressFile = "compress" // exists if the plugin compresses what it answers
	costlyFile   = "costly"   // the name of a costly answer
	floodFile    = "flood"    // exists if the plugin floods the streams of go-plugin
	floodedFile  = "flooded"  // the streams that were flooded
)

// costlyAnswer is the answer that the test chose.
var costlyAnswer = forgery{name: "answers at great cost", do: func(f folder) (any, error) {
	name, err := os.ReadFile(f.file(costlyFile))
	return costly[string(name)].answer, err
}}

// flood sends on a stream of go-plugin what a host would keep, if there is a file that says so.
func (f folder) flood(srv any, s grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	if _, err := os.Stat(f.file(floodFile)); err != nil {
		return handle(srv, s)
	}
	const knock = "\x22\x02\x08\x01" // field 4 of ConnInfo
	for i := range 200_000 {
		message := repeated{field(2, strings.Repeat("x", 1<<20)), 64} // of the output
		if strings.Contains(info.FullMethod, "Broker") {
			message = repeated{string(binary.AppendUvarint([]byte{8}, uint64(i))) + knock, 1}
		}
		if s.SendMsg(message) != nil || s.Context().Err() != nil {
			break
		}
	}
	f.append(floodedFile, info.FullMethod)
	<-s.Context().Done()
	return context.Cause(s.Context())
}
