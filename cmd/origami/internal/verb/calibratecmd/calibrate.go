// Package calibratecmd is `origami calibrate` and `origami fit`: a device file of one's own GPU. calibrate takes its
// numbers from microbenchmarks, and fit takes the constants of the model from measured kernels. What calibrate
// measures is kept as records, and everything else is computed from these, also later and without the GPU.
package calibratecmd

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/core/calibrate"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/hw"
)

// CalibrateOptions are what the command line says.
type CalibrateOptions struct {
	Factory  *session.Factory
	Executor string
	// Records is the file of what is measured, Replay one to compute from instead of measuring.
	Records, Replay string
	// DeviceFile and Overrides are the files to write.
	DeviceFile, Overrides string

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
		Args: session.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return Calibrate(cmd.Context(), o) },
	}
	cmd.Flags().StringVar(&o.Executor, "executor", "", "measure with the executor plugin `NAME`; the first one otherwise")
	cmd.Flags().StringVar(&o.Records, "records", "",
		"`FOLDER` to write what is measured to, in a file named after GPU and day, or a file to continue")
	cmd.Flags().StringVar(&o.Replay, "replay", "", "measure nothing, and compute from the records in `FILE`")
	cmd.Flags().StringVarP(&o.DeviceFile, "output", "o", "", "write a device file to `FILE`, for --device-file")
	cmd.Flags().StringVar(&o.Overrides, "overrides", "", "write the numbers as JSON to `FILE`, for --hw-params")
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
	for _, file := range []string{o.DeviceFile, o.Overrides} {
		if err := session.Writable(file); err != nil {
			return err
		}
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
	if err := o.files(result, inUse); err != nil {
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
