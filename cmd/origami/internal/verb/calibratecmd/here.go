package calibratecmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/origami-gemm/origami/cmd/origami/internal/datastore"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/show"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/core/ladder"
	"github.com/origami-gemm/origami/core/measure"
	"github.com/origami-gemm/origami/core/selector"
	"github.com/origami-gemm/origami/core/stats"
	"github.com/origami-gemm/origami/core/timing"
	"github.com/origami-gemm/origami/sdk/here"
	"github.com/origami-gemm/origami/sdk/host/info"
)

// NewHere returns the command.
func NewHere(f *session.Factory) *cobra.Command {
	return &cobra.Command{
		Use:   "here",
		Short: "Measure the GPU of this machine for all later answers",
		Long: "Calibrate the GPU of this machine. Measure the picks of some sizes with every executor, and the\n" +
			"vendor's library. The GPU's numbers and the errors of the models go into a device file in the\n" +
			"user's configuration folder. Every later answer about this GPU uses the file, in C and Python too:\n" +
			"it rests on times of this very GPU then. It takes a minute or two. After an interrupt, the same\n" +
			"command goes on. Once all is measured, it measures nothing.",
		Example: `  origami here
  origami select --arch auto -m 4096 -n 4096 -k 4096
  origami here --json
  CUDA_VISIBLE_DEVICES=1 origami here
  rm -r ~/.config/origami/devices   # to forget, or to measure again`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, key := range []string{"arch", "device", "device_file", "model", "rung", "timing"} {
				if source := f.Settings.Source(key); strings.HasPrefix(source, "--") {
					return diag.Inputf("the GPU of this machine is measured, with the models that answer by themselves").
						At("%s", source).Do("leave it out; CUDA_VISIBLE_DEVICES chooses one of several GPUs")
				}
			}
			s := &f.Settings
			s.Arch, s.Device, s.DeviceFile, s.Model, s.Rung, s.Kernel = nil, "", "", "", "", ""
			s.Timing = string(timing.Events) // of what is measured
			h := &hereRun{Factory: f, checked: []*part{}}
			if err := h.run(cmd.Context()); err != nil {
				return h.stopped(cmd.Context(), err)
			}
			return h.write()
		},
	}
}

// hereRun is one run of the command.
type hereRun struct {
	*session.Factory
	device    exec.Device
	executors []string
	// folder has what was measured, file is the device file, and numbers is how many the microbenchmarks gave.
	folder, file string
	numbers      int
	sheet        *hw.Sheet
	checked      []*part
	kept         bool // something was measured
}

// part is the kernels of one family for types of one size, or the vendor's library.
type part struct {
	checkedHere
	times []dataset.Measurement
}

// hereSizes returns what is measured: products of each class of shapes, as language models have them. The rows and
// columns are multiples of 16, since other problems are of another kind. The types of 16 bits share
// their intervals. fp8 has its own, and gets the fewest sizes that give one.
func hereSizes() (all []gemm.Problem) {
	sizes := [][3]int{
		{256, 256, 256}, {512, 512, 512}, {128, 1024, 512}, // tiny
		{1, 4096, 4096}, {16, 4096, 4096}, {16, 28672, 4096}, {32, 5120, 13824}, {64, 4096, 14336}, // decode
		{256, 256, 8192}, {512, 512, 16384}, {1008, 512, 8192}, // large K
		{128, 4096, 4096}, {512, 14336, 4096}, {8192, 512, 4096}, // skinny
		{1024, 1024, 1024}, {1536, 2048, 2048}, {3088, 3088, 1040}, {2048, 4096, 11008}, {4096, 4096, 4096},
		{8192, 8192, 4096}, // square
	}
	for i, s := range sizes {
		p := gemm.New(s[0], s[1], s[2])
		if i%2 == 1 {
			p.DType = gemm.BF16
		}
		if i/2%2 == 1 { // B as linear layers keep it
			p.BMajor = gemm.MajorK
		}
		all = append(all, p.Canonical())
	}
	for i, s := range sizes {
		if i%5 < 3 {
			p := gemm.New(s[0], s[1], s[2])
			p.DType, p.BMajor = gemm.FP8, gemm.MajorK
			all = append(all, p.Canonical())
		}
	}
	return all
}

// run measures, and writes the device file.
func (h *hereRun) run(ctx context.Context) error {
	if err := h.find(ctx); err != nil {
		return err
	}
	before, err := h.open(ctx, "", nil)
	if err != nil {
		return err
	}
	if err := h.calibrate(ctx, before.Describe()); err != nil {
		return err
	}
	text, err := hw.EncodeSheet(h.sheet)
	if err != nil {
		return err
	}
	for i, name := range h.executors {
		err := h.measure(ctx, text, name, i == 0)
		if err != nil && (i == 0 || ctx.Err() != nil) {
			return err
		}
		h.leaveOut(name, err)
	}
	var spreads []float64
	for _, p := range h.checked {
		for i := range p.times {
			spreads = append(spreads, p.times[i].RelativeMAD)
		}
	}
	if spread := stats.Median(spreads); spread > mostSpread {
		_ = os.RemoveAll(h.folder) // worth nothing; the error says more
		return &diag.Error{Kind: diag.Device, Where: h.device.Name, What: "the times of a kernel vary by " +
			digits.Percent(spread) + " at the median: something else uses the GPU", Fix: "end it, or wait, and run it again"}
	}
	for _, p := range h.checked {
		if err := h.check(ctx, p, text); err != nil {
			return err
		}
	}
	return h.save(ctx)
}

// mostSpread is a spread of the samples of a kernel that a GPU without other work does not have at the median: the
// kernels of h200-triton-executor have 0.1 %.
const mostSpread = 0.05

// find finds the GPU, the executors that reach it, and the places of the files.
func (h *hereRun) find(ctx context.Context) error {
	folder := here.Devices()
	if folder == "" {
		return diag.Inputf("there is no configuration folder").Do("set HOME or XDG_CONFIG_HOME to a full path")
	}
	plugins, err := h.Plugins(ctx)
	if err != nil {
		return err
	}
	left := map[string]error{}
	for _, p := range plugins {
		if !p.Executor || p.State != info.OK {
			continue
		}
		devices, err := h.devices(ctx, p.Name)
		if err == nil && h.executors != nil && devices[0].Name != h.device.Name {
			err = diag.Inputf("its first GPU is %s", devices[0].Name)
		}
		if left[p.Name] = err; err == nil {
			h.device, h.executors = devices[0], append(h.executors, p.Name)
		}
	}
	if h.executors == nil {
		_, err := h.devices(ctx, "") // of the first one, or that there is none
		return err
	}
	for _, p := range plugins {
		h.leaveOut(p.Name, left[p.Name])
	}
	h.folder = filepath.Join(folder, slug(h.device.Name))
	h.file = h.folder + ".yaml"
	if err := os.MkdirAll(h.folder, 0o755); err != nil {
		return diag.Inputf("it cannot be made: %v", diag.WithoutPath(err)).At("%s", h.folder).Do("make room for it")
	}
	return session.Writable(h.file)
}

// devices returns the GPUs that an executor reaches, at least one.
func (h *hereRun) devices(ctx context.Context, executor string) (all []exec.Device, err error) {
	x, err := h.Executor(ctx, executor)
	if err != nil {
		return nil, err
	}
	if all, err = x.Devices(ctx); err == nil && len(all) == 0 {
		err = &diag.Error{Kind: diag.Device, Where: "executor " + executor, What: "it found no GPU", Fix: "check the driver"}
	}
	_ = x.Close() // the list is there
	return all, err
}

// open opens the model of a kernel family, without what was measured or with a device file.
func (h *hereRun) open(ctx context.Context, kernel string, file []byte) (arch.Architecture, error) {
	return h.OpenGPU(ctx, h.device, func(r *arch.OpenRequest) {
		if r.Kernel = kernel; file != nil {
			r.Device, r.DeviceFile = "", file
		}
	})
}

// calibrate begins the device file. Of a device that origami has a file of, it has the measured numbers only if there
// are none.
func (h *hereRun) calibrate(ctx context.Context, d *arch.Description) error {
	var r *outcome
	err := error(diag.Inputf("nothing runs programs"))
	for i := 0; i < len(h.executors) && diag.KindOf(err) == diag.Input; i++ { // not every executor runs programs
		o := &CalibrateOptions{Factory: h.Factory, Executor: h.executors[i], within: true,
			Records: filepath.Join(h.folder, "calibration.jsonl")}
		if r, err = o.measure(ctx); err == nil {
			break
		}
	}
	h.kept = true
	if err != nil {
		return err
	}
	if n := len(r.refused); n > 0 {
		h.Streams.Note(fmt.Sprintf("%s; `origami calibrate --replay %s` says why",
			digits.Plural(n, "microbenchmark has no value", "microbenchmarks have no value"), r.file))
	}
	if h.numbers = len(r.numbers); h.numbers == 0 && d.Device == arch.LiveID {
		return diag.Inputf("no number of the GPU could be measured").At("%s", r.file).Do("use another executor")
	}
	if h.sheet = r.sheet(d); d.Device != arch.LiveID {
		if h.sheet.Device, h.sheet.Aliases, h.sheet.Derived = d.Device, d.Aliases, nil; d.Rung != arch.RungSpec {
			h.sheet.Calibrated = nil
		}
		h.sheet.Atoms = nil
	}
	h.sheet.Here = true
	return nil
}

// measure measures the picks of the families of an executor, and the first library if it is to.
func (h *hereRun) measure(ctx context.Context, file []byte, executor string, library bool) (err error) {
	a, err := h.open(ctx, "", file)
	if err != nil {
		return err
	}
	sweep, memory, err := h.Sweep(ctx, a, executor, false)
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, sweep.Executor.Close()) }()
	families, err := h.FamiliesToMeasure(ctx, sweep)
	if err != nil {
		return err
	}
	sizes := slices.DeleteFunc(hereSizes(), func(p gemm.Problem) bool {
		return !datastore.Fits(h.Streams, p, memory)
	})
	for i, family := range families {
		one := sweep.Of(family)
		one.Data.Source = "origami here"
		libraries := one.Libraries[:min(1, len(one.Libraries))]
		if i > 0 || !library {
			libraries = nil
		}
		if err := h.fill(ctx, one, sizes, libraries); err != nil {
			return err
		}
	}
	return nil
}

// fill measures what the folder of a family does not have yet.
func (h *hereRun) fill(ctx context.Context, s *measure.Sweep, sizes []gemm.Problem, libraries []string) (err error) {
	var wanted []dataset.Measurement
	for _, p := range sizes {
		e, err := selector.RankOne(ctx, s.Arch, p, selector.Request{Space: s.Space, Top: 1})
		if err == nil {
			wanted = append(wanted, dataset.Measurement{Problem: p, Config: e[0].Config})
		} else if diag.KindOf(err) != diag.Input { // the family has no kernel for the type
			return err
		}
		for _, name := range libraries {
			wanted = append(wanted, dataset.Measurement{Problem: p, Library: name})
		}
	}
	c := s.Data.Conditions
	store, err := datastore.Open(ctx, filepath.Join(h.folder, strings.Join(
		strings.Fields(c.Kernel+" "+c.Executor+" "+c.ExecutorVersion), "-")), s.Data)
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, store.Close()) }()
	bar := show.NewBar(h.Streams, fmt.Sprintf("measuring %s with %s", c.Kernel, c.Executor))
	defer bar.Stop()
	bar.Set(0, int64(len(wanted)-store.Data.Len()))
	s.Data, s.Keep = store.Data, store.Append
	s.Done = func(m dataset.Measurement) {
		bar.Add(1)
		if why, worth := datastore.LeftOut(&m); worth {
			bar.Warn(why)
		}
	}
	if err := s.Measure(ctx, wanted); err != nil {
		return err
	}
	for _, w := range wanted {
		if m, ok := s.Data.Like(&w); ok && m.Status == dataset.OK {
			h.add(&m)
		}
	}
	return nil
}

// add adds a time to its part.
func (h *hereRun) add(m *dataset.Measurement) {
	kernel, bits := m.Config.Kernel, m.Problem.DType.Bits()
	if m.Library != "" {
		kernel = ladder.Library
	}
	i := slices.IndexFunc(h.checked, func(p *part) bool { return p.Kernel == kernel && p.bits == bits })
	if i < 0 {
		i = len(h.checked)
		h.checked = append(h.checked, &part{checkedHere: checkedHere{Kernel: kernel, bits: bits}})
	}
	p := h.checked[i]
	if t := m.Problem.DType.String(); !slices.Contains(p.Types, t) {
		p.Types = append(p.Types, t)
	}
	p.times = append(p.times, *m)
	p.Times++
}

// leaveOut says why an executor does not measure.
func (h *hereRun) leaveOut(executor string, why error) {
	if why != nil {
		h.Streams.Note(fmt.Sprintf("the executor %s is left out: %s", executor, diag.Line(why)))
	}
}

// stopped says that what was measured is kept.
func (h *hereRun) stopped(ctx context.Context, err error) error {
	var d *diag.Error
	if !h.kept || !errors.As(datastore.StoppedWith(ctx, err, "", ""), &d) {
		return err
	}
	return d.Also("what was measured is kept, and the same command goes on")
}
