package wire

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/origami-gemm/origami/internal/testing/must"
	pb "github.com/origami-gemm/origami/sdk/proto/origami/plugin/v1"
)

// leaves visits the texts, numbers and booleans of a JSON value, each with the keys to it.
func leaves(v any, at []string, set func(any), visit func(at []string, old any, set func(any))) {
	switch v := v.(type) {
	case map[string]any:
		for key, x := range v {
			leaves(x, append(slices.Clone(at), key), func(x any) { v[key] = x }, visit)
		}
	case []any:
		for i, x := range v {
			leaves(x, at, func(x any) { v[i] = x }, visit)
		}
	default:
		visit(at, v, set)
	}
}

// In every message that is JSON, each leaf in turn becomes a value that makes no sense. The lists are of the last two
// keys to it: where such a number is taken, and where such a text, or 0, is refused. The others: the reverse.
// Nothing is null, and nothing but a boolean is true.
func TestEveryLeafIsChecked(t *testing.T) {
	long := strings.Repeat("a", maxID+1)
	const signed = "atoms.latency_cycles attributes.clock attributes.dram_bandwidth attributes.num_sms bandwidth.c0 " +
		"bandwidth.c1 bandwidth.c2 bandwidth.peak_bytes_per_cycle levels.capacity_bytes levels.latency_cycles " +
		"numbers.value one.clock_hz one.spread order.window params.value problems.alpha problems.beta temperature_celsius"
	// Enumerations, ids and names; those of them that may be empty; and texts of other kinds that must be there.
	const words = "archs.fitted archs.id archs.kernels archs.models arguments.dtype arguments.kind atoms.dtype " +
		"axes.cluster axes.default axes.name axes.type axes.values ceilings.dtype ceilings.level " +
		"description.kernels description.model description.models description.monotone description.unused " +
		"devices.aliases devices.id families.name layouts.amajor layouts.bmajor levels.bound order.keys " +
		"params.name params.tier peak.dtype problem.dtype problems.dtype ranges.bound rungs.operands terms.kind " +
		"types.in types.out value "
	const optional = "clock description.clock_rung description.rung problem.out_dtype problems.epilogue " +
		"problems.nest problems.out_dtype uncertainty.evidence "
	const needed = "arch atoms.type ceilings.name claims.rung constants.name costs.name costs.term " +
		"description.arch description.device device device.arch device.name family fitted.data_set levels.name " +
		"name numbers.name others.name program.entry program.text published.rung rungs.name terms.name " +
		"uncertainty.kernel "
	// A range ends behind 0.
	const positive = "arguments.bytes atoms.cycles batch.high checked constants.high constants.low " +
		"constants.value description.clock_hz divisor.high flops.high k.high kernel m.high n.high one.value " +
		"problem.batch problem.k problem.m problem.n problems.batch problems.groups problems.k problems.m " +
		"problems.n program.counters program.grid program.launches program.threads " +
		"published.rate_flops_per_second ranges.high ranges.low runs seconds split_k.high uncertainty.level work "
	wants := map[any]string{nil: "", true: "", -1: signed, 5e-324: signed + " constants.low constants.value max_error",
		1e300: "max_error one.clock_hz one.spread", "a \x1b": words + optional, long: words + optional,
		"": words + needed, 0: positive}
	got := map[any]map[string]bool{}
	for _, m := range messages(t) {
		q, ok := m.seed.(*pb.Json)
		if !ok {
			continue
		}
		var v any
		must.Do(t, json.Unmarshal(q.Json, &v))
		leaves(v, nil, nil, func(at []string, old any, set func(any)) {
			place := strings.Join(at[max(0, len(at)-2):], ".")
			for bad := range wants {
				_, text := bad.(string)
				_, wasText := old.(string)
				set(bad)
				out, err := m.read(must.Get(proto.Marshal(&pb.Json{Json: must.Get(json.Marshal(v))(t)}))(t))
				if refused := err == nil && out == nil; refused == (text || bad == 0) && text == wasText && old != true {
					if got[bad] == nil {
						got[bad] = map[string]bool{}
					}
					got[bad][place] = true
				}
				set(old)
			}
		})
	}
	for bad, want := range wants {
		want := strings.Fields(want)
		slices.Sort(want)
		got := slices.Sorted(maps.Keys(got[bad]))
		must.That(t, slices.Equal(got, want), "%v: %s\nwant %s", bad, got, want)
	}
}
