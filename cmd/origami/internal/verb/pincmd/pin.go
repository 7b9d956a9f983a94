// Package pincmd is `origami pin`: configurations of any Triton kernel, which the Python package origami_gemm.pin
// compiles and reads.
package pincmd

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/origami-gemm/origami/ask/models"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/show"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/unit"
)

// New returns the command.
func New(f *session.Factory) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "pin LAUNCHES --arch ARCH",
		Short: "Choose the configuration of any Triton kernel without a clock",
		Long: "Choose a configuration for each launch in LAUNCHES, a Python file with a list of that name: the same in\n" +
			"every process, on every rank and machine. Each configuration of the kernel's list is compiled, which\n" +
			"needs no GPU, and its time is predicted. It is done by the package origami_gemm.pin of the python3 on\n" +
			"PATH, with Triton. The file is run: use it on code that you would run. `python3 -m origami_gemm.pin\n" +
			"check` compares two versions of Triton or of kernels. docs/pin.md has more.",
		Example: "  origami pin launches.py --arch sm90@h200\n  origami pin launches.py --arch sm90@h200 --all --json",
		Args:    session.OneArgument("LAUNCHES", "a Python file with a list LAUNCHES"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return run(cmd.Context(), f, args[0], all)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "list all candidates")
	return cmd
}

// config is a configuration as triton.Config has it.
type config struct {
	Kwargs    map[string]any `json:"kwargs"`             // its named values
	NumWarps  int            `json:"num_warps"`          // as Triton has them
	NumStages int            `json:"num_stages"`         // as Triton has them
	NumCTAs   int            `json:"num_ctas,omitempty"` // as Triton has them
	MaxNReg   int            `json:"maxnreg,omitempty"`  // as Triton has them
}

// pin is the choice for a launch.
type pin struct {
	Name     string      `json:"name"`                 // of the launch, as the file has it
	Config   config      `json:"config"`               // the configuration to take
	Seconds  *float64    `json:"seconds"`              // its predicted time, null if it is withheld
	Interval *[2]float64 `json:"interval"`             // that holds 90 % of the times
	Evidence string      `json:"evidence"`             // `checked`, `unchecked` or `withheld`
	Why      string      `json:"why"`                  // a line about it
	Assumed  []string    `json:"assumed"`              // of data, which the time rests on
	Key      string      `json:"key"`                  // a hash of all that the choice depends on
	Others   []candidate `json:"candidates,omitempty"` // with `--all`
}

// candidate is a configuration of a launch's list.
type candidate struct {
	Config    config   `json:"config"`    // as above
	Seconds   *float64 `json:"seconds"`   // its predicted time, null if it cannot be taken
	Bound     string   `json:"bound"`     // what it waits for most
	Registers int      `json:"registers"` // of a thread
	Spills    int      `json:"spills"`    // spilled registers of a thread
	Error     string   `json:"error"`     // why it cannot be taken
}

func run(ctx context.Context, f *session.Factory, file string, all bool) error {
	targets, err := models.Parse(f.Settings.Arch, f.Settings.Device)
	if err != nil {
		return err
	}
	if len(targets) != 1 {
		return diag.Inputf("%d architectures are named", len(targets)).At("--arch").Do("name one, as in sm90@h200")
	}
	args := []string{"-m", "origami_gemm.pin", "choose", file, "--arch", targets[0].Name()}
	if all {
		args = append(args, "--all")
	}
	bar := show.NewBar(f.Streams, "compiling")
	text, err := python(ctx, args)
	bar.Stop()
	if err != nil {
		return err
	}
	var pins []pin
	for d := json.NewDecoder(bytes.NewReader(text)); ; {
		var p pin
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return diag.Inputf("origami_gemm.pin answers in another way: %v", err).At("python3").
				Do("install the origami-gemm of this version")
		}
		pins = append(pins, p)
	}
	key, cell := show.Key[pin], show.Text[pin]
	return show.NewRows(f.Streams, f.Format(), key("name"), cell("config", func(p *pin) string { return p.Config.text() }),
		cell("time", (*pin).time), key("evidence"), key("why")).All(pins)
}

// python runs the Python on PATH, and returns its output.
func python(ctx context.Context, args []string) ([]byte, error) {
	var said bytes.Buffer
	c := exec.CommandContext(ctx, "python3", args...)
	c.Stderr = &said
	text, err := c.Output()
	if err == nil {
		return text, nil
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	lines := strings.Split(strings.TrimSpace(said.String()), "\n")
	last, ours := strings.CutPrefix(lines[len(lines)-1], "pin: ")
	switch {
	case errors.Is(err, exec.ErrNotFound), strings.HasPrefix(last, "ModuleNotFoundError"),
		strings.Contains(last, "No module"):
		return nil, diag.Inputf("origami_gemm.pin cannot run: %s", cmp.Or(last, err.Error())).At("python3").
			Do("`pip install origami-gemm triton`, and put its python3 on PATH")
	case ours:
		return nil, diag.Inputf("%s", last).At("LAUNCHES")
	}
	return nil, diag.Inputf("the file ends with an error: %s", cmp.Or(last, err.Error())).At("LAUNCHES").
		Do("run it with python3, which says where")
}

// time is the predicted time in a table's cell, which is empty if it is withheld.
func (p *pin) time() string {
	if p.Seconds == nil {
		return ""
	}
	return unit.SI(*p.Seconds, "s")
}

// text is a configuration in a table's cell.
func (c *config) text() string {
	var parts []string
	for name, value := range c.Kwargs {
		parts = append(parts, fmt.Sprintf("%s=%v", name, value))
	}
	slices.Sort(parts)
	return strings.Join(append(parts, fmt.Sprintf("w%d s%d", c.NumWarps, c.NumStages)), " ")
}
