package wire

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/calibrate"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/fit"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/internal/testing/fake"
	"github.com/origami-gemm/origami/internal/testing/must"
	pb "github.com/origami-gemm/origami/sdk/proto/origami/plugin/v1"
)

// sampleOf are all candidates of some problems.
func sampleOf(t *testing.T, a arch.Architecture, problems int) (sample []fit.Kernels, kernels int) {
	t.Helper()
	for i := range problems {
		p := gemm.New(64+i, 64, 64)
		list := must.Get(a.Candidates(t.Context(), p, arch.Space{}))(t)
		sample = append(sample, fit.Kernels{Problem: p, Configs: list.Configs})
		kernels += len(list.Configs)
	}
	return sample, kernels
}

// A model gives the same times under other values here and in a plugin, whatever the sets have. One call carries many
// sets and all problems, and the kernels travel once.
func TestOtherValuesAreBitEqual(t *testing.T) {
	local := must.Get(fake.Provider{}.Open(t.Context(), arch.OpenRequest{Arch: "fake"}))(t)
	p := connect(t)
	remote := p.open(t)
	sample, kernels := sampleOf(t, remote, 20)
	values := []map[string]float64{nil, {"e": math.E}, {}}
	for i := range 60 {
		values = append(values, map[string]float64{"e": 1 + float64(i)/17})
	}
	want := must.Get(local.(fit.Tunable).EstimateWith(t.Context(), values, sample))(t)
	p.requests = nil
	got, err := remote.EstimateWith(t.Context(), values, sample)
	must.Need(t, err == nil && reflect.DeepEqual(got, want), "%d rows, %v", len(got), err)
	must.That(t, reflect.DeepEqual(got[0], got[1]) && !reflect.DeepEqual(got[0], got[3]),
		"a value in use changes the times, or another one does not")
	calls := (len(values)*kernels + timesPerCall - 1) / timesPerCall
	for i, r := range p.requests {
		carried := r.(*pb.EstimateWithRequest).GetConfigs().Configs != nil
		must.That(t, carried == (i == 0), "call %d carries the kernels: %t", i+1, carried)
	}
	must.That(t, len(p.requests) == calls && calls >= 2,
		"%d calls for %d times, want %d", len(p.requests), len(values)*kernels, calls)
	_, err = remote.EstimateWith(t.Context(), []map[string]float64{{"pi": 3}}, sample)
	must.That(t, err != nil &&
		diag.KindOf(err) == diag.Input && strings.Contains(err.Error(), `no constant "pi"`), "an unknown constant: %v", err)
	p.forge = func(m proto.Message) { m.(*pb.EstimateWithResponse).Seconds[0] = -1 }
	_, err = remote.EstimateWith(t.Context(), values[:1], sample)
	must.That(t, diag.KindOf(err) == diag.Plugin, "a time of -1 s: %v", err)
	p.forge = func(m proto.Message) { m.(*pb.EstimateWithResponse).Seconds = nil }
	_, err = remote.EstimateWith(t.Context(), values[:1], sample)
	must.That(t, diag.KindOf(err) == diag.Plugin, "no times: %v", err)
}

// What a host asks for wrongly is refused.
func TestOtherValuesAsked(t *testing.T) {
	p := connect(t)
	a := p.open(t)
	sample, kernels := sampleOf(t, a, 2)
	must.Get(a.EstimateWith(t.Context(), []map[string]float64{{"e": 2}}, sample))(t)
	sent := p.requests[len(p.requests)-1].(*pb.EstimateWithRequest)
	for what, change := range map[string]func(*pb.EstimateWithRequest){
		"counts":              func(q *pb.EstimateWithRequest) { q.Counts = q.Counts[:1] },
		"0 sets":              func(q *pb.EstimateWithRequest) { q.Sets = 0 },
		"sets of values":      func(q *pb.EstimateWithRequest) { q.Values = append(q.Values, 1) },
		"9000000000 sets":     func(q *pb.EstimateWithRequest) { q.Sets, q.Constants, q.Values = 9e9, nil, nil },
		"20000 sets":          func(q *pb.EstimateWithRequest) { q.Sets, q.Constants, q.Values = 20000, nil, nil },
		"e is NaN":            func(q *pb.EstimateWithRequest) { q.Values[0] = math.NaN() },
		"kernels for problem": func(q *pb.EstimateWithRequest) { q.Counts[1] = int64(kernels) },
		"without a problem":   func(q *pb.EstimateWithRequest) { q.Counts[1]-- },
	} {
		q := proto.Clone(sent).(*pb.EstimateWithRequest)
		change(q)
		_, err := p.client.arch.EstimateWith(t.Context(), q)
		d, _ := details(err)
		must.That(t, d != nil && strings.Contains(d.What, what), "%s: %v", what, err)
	}
}

// A plan and its numbers are the same here and in a plugin, to the bit, and so is a ladder.
func TestPlansAndLaddersAreEqual(t *testing.T) {
	p := connect(t)
	d := exec.Device{Name: "GPU", Arch: "fake", Attributes: map[string]float64{"units": 3}}
	local := must.Get(fake.Provider{}.Calibration(t.Context(), d))(t)
	remote, err := p.client.Calibration(t.Context(), d)
	must.Need(t, err == nil && reflect.DeepEqual(remote.Probes, local.Probes), "%+v, %v", remote, err)
	reading := exec.Reading{Sample: exec.Sample{Time: 1.0 / 7, Clock: 1e9}, Counters: []uint64{12345}}
	round := calibrate.Round{Work: 1.0 / 3, Environment: exec.Environment{Time: time.Unix(1e9, 0)},
		Readings: []exec.Reading{reading}}
	values := local.Values(map[string][]calibrate.Round{"one": {round, round, round}})
	must.Need(t, values["one"].Refused == "" && values["two"].Refused != "", "%+v", values)
	wantNumbers, wantAtoms, _ := local.Numbers(t.Context(), values)
	numbers, atoms, err := remote.Numbers(t.Context(), values)
	must.That(t, err == nil && len(numbers) == 1 && reflect.DeepEqual(numbers, wantNumbers) &&
		reflect.DeepEqual(atoms, wantAtoms), "%+v %+v, %v, want %+v %+v", numbers, atoms, err, wantNumbers, wantAtoms)
	var none *diag.Error
	_, err = p.client.Calibration(t.Context(), exec.Device{Name: "GPU", Arch: "fake"})
	must.That(t, errors.As(err, &none) &&
		none.What == "GPU has no units", "a device without microbenchmarks: %v", err)
	p.forge = func(m proto.Message) { rewrite(m, func(p *[]calibrate.Probe) { (*p)[0].Value = "secs" }) }
	_, err = p.client.Calibration(t.Context(), d)
	must.That(t, diag.KindOf(err) == diag.Plugin, "a formula over an unknown name: %v", err)
	p.forge = nil

	want, _ := fake.Provider{}.Ladder(t.Context())
	got, err := p.client.Ladder(t.Context())
	must.That(t, err == nil && reflect.DeepEqual(got, want), "%+v, %v, want %+v", got, err, want)
}

// plain is a plugin without optional interfaces.
type plain struct{ arch.Provider }

func (p plain) Manifest() arch.Manifest {
	m := p.Provider.Manifest()
	m.Calibrates, m.Ladder, m.Archs[0].Fitted = false, false, nil
	return m
}

// A plugin without an interface does not answer its calls, and all others as before.
func TestPluginWithoutOptionalInterfaces(t *testing.T) {
	p := connectTo(t, ArchService(plain{fake.Provider{}}))
	if m, err := p.client.Manifest(t.Context()); err != nil || m.Calibrates || m.Ladder || m.Archs[0].Fitted != nil {
		t.Errorf("%+v, %v", m, err)
	}
	_, calibration := p.client.Calibration(t.Context(), exec.Device{Name: "GPU", Arch: "fake"})
	_, ladder := p.client.Ladder(t.Context())
	for _, err := range []error{calibration, ladder} {
		must.That(t, diag.KindOf(err) == diag.Plugin && strings.Contains(err.Error(), "Unimplemented"), "%v", err)
	}
	for name, err := range callAll(t.Context(), p.client, p.open(t)) {
		must.That(t, err == nil, "%s: %v", name, err)
	}
}
