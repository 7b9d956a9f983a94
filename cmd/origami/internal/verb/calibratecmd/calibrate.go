// Package calibratecmd is `origami calibrate` and `origami fit`: a device file of one's own GPU. calibrate takes its
// numbers from microbenchmarks, and fit takes the constants of the model from measured kernels. What calibrate
// measures is kept as records, and everything else is computed from these, also later and without the GPU.
package calibratecmd

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/origami-gemm/origami/cmd/origami/internal/datastore"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/show"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/calibrate"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/core/limit"
)

// CalibrateOptions are what the command line says.
type CalibrateOptions struct {
	Factory    *session.Factory
	Executor   string `json:"executor" arg:"NAME" help:"measure with the executor plugin NAME; the first one otherwise"`
	Replay     string `json:"replay" arg:"FILE" help:"measure nothing, and compute from the records in FILE"`
	Records    string `json:"records" arg:"FOLDER" help:"FOLDER to write what is measured to, in a file named after GPU and day, or a file to continue"`
	DeviceFile string `json:"output" short:"o" arg:"FILE" help:"write a device file to FILE, for --device-file"`

	within bool // another command calibrates, and says where the records are
}

// NewCalibrate returns the command.
func NewCalibrate(f *session.Factory) *cobra.Command {
	o := &CalibrateOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "calibrate",
		Short: "Measure the numbers of a GPU with microbenchmarks",
		Long: "Measure clock, bandwidths, latencies and instruction rates of a GPU in this machine with\n" +
			"microbenchmarks, three rounds of each in turns. A number that varies by more than 3 % is measured\n" +
			"again, and refused if it stays so. Every round is written to a file in --records at once, so that\n" +
			"the same command continues a run that ended early. The answer lists the numbers beside those in\n" +
			"use, and which picks they change. --output makes a device file, which --device-file takes in every\n" +
			"command, also of a GPU that origami does not know. docs/calibrating.md has the methods.",
		Example: `  origami calibrate
  origami calibrate --output my-gpu.yaml && origami --device-file my-gpu.yaml select -m 4096 -n 4096 -k 4096
  origami calibrate --replay nvidia-h200-calibration-2026-11-22.jsonl --json
  origami calibrate --device auto:1 --executor cuda --records second-gpu`,
		RunE: func(cmd *cobra.Command, _ []string) error { return Calibrate(cmd.Context(), o) },
	}
	session.Register(cmd.Flags(), o)
	return cmd
}

// outcome is what the records say.
type outcome struct {
	file    string
	records *calibrate.Records
	plan    *calibrate.Plan
	values  calibrate.Values
	numbers []calibrate.Number
	atoms   []hw.Atom
	// refused is why a probe has no value, by probe.
	refused map[string]string
}

// Calibrate answers.
func Calibrate(ctx context.Context, o *CalibrateOptions) error {
	if err := session.Writable(o.DeviceFile); err != nil {
		return err
	}
	var result *outcome
	var err error
	switch {
	case o.Replay != "" && (o.Records != "" || o.Executor != ""):
		return diag.Inputf("it measures nothing").At("--replay").Do("leave out --records and --executor")
	case o.Replay != "":
		result, err = o.replay(ctx)
	default:
		result, err = o.measure(ctx)
	}
	if err != nil {
		return err
	}
	for _, probe := range slices.Sorted(maps.Keys(result.refused)) {
		if o.Replay == "" || result.values[probe].Rounds > 0 {
			o.Factory.Streams.Warn(fmt.Sprintf("%s is refused: %s", probe, result.refused[probe]))
		}
	}
	if missing := result.missing(); o.Replay != "" && len(missing) > 0 {
		o.Factory.Streams.Note(fmt.Sprintf("the records lack %s, so the numbers that need them are missing: "+
			"those of the data sheet, or none, count in their place", strings.Join(missing, ", ")))
	}
	if len(result.numbers) == 0 {
		return diag.Inputf("no number could be computed").At("%s", result.file).Do("measure more rounds")
	}
	c, inUse, err := o.compare(ctx, result)
	if err != nil {
		return err
	}
	if err := o.writeFile(result, inUse); err != nil {
		return err
	}
	return c.write(o.Factory.Streams, o.Factory.Format())
}

// missing are the probes that were never measured, for example because the records are older than they.
func (r *outcome) missing() (names []string) {
	for i := range r.plan.Probes {
		if name := r.plan.Probes[i].Name; r.values[name].Rounds == 0 {
			names = append(names, name)
		}
	}
	return names
}

// newOutcome computes everything from records.
func newOutcome(
	ctx context.Context, file string, r *calibrate.Records, plan *calibrate.Plan, refused map[string]string,
) (*outcome, error) {
	out := &outcome{file: file, records: r, plan: plan, values: plan.Values(r.Rounds), refused: maps.Clone(refused)}
	if out.refused == nil {
		out.refused = map[string]string{}
	}
	for name, v := range out.values {
		if v.Refused != "" && out.refused[name] == "" {
			out.refused[name] = v.Refused
		}
	}
	var err error
	out.numbers, out.atoms, err = plan.Numbers(ctx, out.values)
	return out, err
}

// replay computes from records alone.
func (o *CalibrateOptions) replay(ctx context.Context) (*outcome, error) {
	records, err := read(ctx, o.Replay)
	if err != nil {
		return nil, err
	}
	p, err := o.Factory.Calibration(ctx, records.Device)
	if err != nil {
		return nil, err
	}
	return newOutcome(ctx, o.Replay, records, p, nil)
}

func read(ctx context.Context, file string) (*calibrate.Records, error) {
	in, err := session.OpenFile(ctx, file)
	if err != nil {
		return nil, unreadable(file, err)
	}
	defer func() { _ = in.Close() }()
	from := io.Reader(in)
	if strings.HasSuffix(file, ".gz") {
		if from, err = gzip.NewReader(in); err != nil {
			return nil, unreadable(file, err)
		}
	}
	return calibrate.ReadRecords(file, limit.Reader(from, file, limit.Records, "give the records of one GPU"))
}

func unreadable(file string, err error) error {
	err = diag.WithoutPath(err)
	return diag.Inputf("the records cannot be read: %v", err).At("%s", file).Do("check the name")
}

// measure measures what the records lack.
func (o *CalibrateOptions) measure(ctx context.Context) (_ *outcome, err error) {
	x, err := o.Factory.Executor(ctx, o.Executor)
	if err != nil {
		return nil, err
	}
	defer func() {
		if closed := x.Close(); err == nil {
			err = closed
		}
	}()
	runner, ok := x.(exec.Runner)
	if !ok {
		return nil, diag.Inputf("it runs no programs").At("--executor %s", o.Executor).Do("use another executor")
	}
	at, device, err := o.device(ctx, x)
	if err != nil {
		return nil, err
	}
	p, err := o.Factory.Calibration(ctx, device)
	if err != nil {
		return nil, err
	}
	records := &calibrate.Records{Device: device, Executor: o.Executor, Host: session.Software()}
	if named, ok := x.(interface {
		Manifest(ctx context.Context) (exec.Manifest, error)
	}); ok {
		manifest, err := named.Manifest(ctx)
		if err != nil {
			return nil, err
		}
		records.Executor, records.Version = manifest.Name, manifest.Version
	}
	file := o.Records
	if info, err := os.Stat(file); file == "" || err == nil && info.IsDir() {
		file = filepath.Join(file, slug(device.Name)+"-calibration-"+time.Now().Format(time.DateOnly)+".jsonl")
		o.Factory.Streams.Note("measurements are kept in " + file)
	}
	log, err := openLog(ctx, file, records)
	if err != nil {
		return nil, err
	}
	defer func() {
		if closed := log.Close(); err == nil {
			err = closed
		}
	}()
	bar := show.NewBar(o.Factory.Streams, "calibrating")
	defer bar.Stop()
	s := &calibrate.Session{Plan: p, Device: at, Runner: runner, Environment: x.Environment, Rounds: records.Rounds,
		Keep: func(p *calibrate.Probe, r calibrate.Round) error {
			line, err := calibrate.RoundLine(p.Name, r)
			if err != nil {
				return err
			}
			return log.Write(line)
		},
		Begin: func(probe *calibrate.Probe, done, total int) {
			bar.Set(int64(done), int64(total))
			bar.SetMessage(fmt.Sprintf("%d/%d rounds, %s", done, total, probe.Name))
		}}
	refused, err := s.Run(ctx)
	if err != nil && o.within {
		return nil, err
	}
	if err != nil {
		return nil, datastore.StoppedWith(ctx, err, "what was measured is", file)
	}
	return newOutcome(ctx, file, records, p, refused)
}

// device returns the GPU that --device means, and its number.
func (o *CalibrateOptions) device(ctx context.Context, x exec.Executor) (int, exec.Device, error) {
	devices, err := x.Devices(ctx)
	if err != nil {
		return 0, exec.Device{}, err
	}
	name, number, _ := strings.Cut(o.Factory.Settings.Device, ":")
	if name != "" && name != arch.LiveID {
		return 0, exec.Device{}, diag.Inputf("a GPU of this machine is measured, and %s is a name of origami's",
			o.Factory.Settings.Device).At("--device").Do("use auto, or auto:1 for the second GPU")
	}
	at := 0
	if number != "" {
		if at, err = strconv.Atoi(number); err != nil {
			at = -1
		}
	}
	if at < 0 || at >= len(devices) {
		return 0, exec.Device{}, &diag.Error{Kind: diag.Device, Where: "--device " + arch.LiveID + ":" + number,
			What: "this machine has no such GPU", Fix: fmt.Sprintf("it has %d, numbered from 0", len(devices))}
	}
	return at, devices[at], nil
}

// slug makes a file name of a product name: "nvidia-h200".
func slug(name string) string {
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool {
		return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
	return strings.Join(words, "-")
}

// openLog opens a file of records to continue it, and reads what it has into records, or begins it.
func openLog(ctx context.Context, file string, records *calibrate.Records) (log *datastore.Journal, err error) {
	if log, err = datastore.OpenJournal(file); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = log.Close() // the error says more
		}
	}()
	if log.Size() == 0 {
		records.Rounds = map[string][]calibrate.Round{}
		line, err := records.HeaderLine()
		if err != nil {
			return nil, err
		}
		return log, log.Write(line)
	}
	old, err := read(ctx, file)
	if err != nil {
		return nil, err
	}
	if old.Device.Name != records.Device.Name || !reflect.DeepEqual(old.Device.Attributes, records.Device.Attributes) {
		return nil, diag.Inputf("it has measurements of another GPU, or the driver describes it otherwise now: %s",
			old.Device.Name).At("%s", file).Do("name another file with --records")
	}
	*records = *old
	return log, log.Cut(log.Size() - old.Torn)
}
