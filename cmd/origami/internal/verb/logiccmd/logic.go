// Package logiccmd is `origami logic`: library logic, which maps sizes to kernels. It is built from measured times,
// shown, held against measured times, and read and written in the forms of libraries.
package logiccmd

import (
	"github.com/spf13/cobra"

	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/formats/tensile"
)

// New returns the command with its subcommands.
func New(f *session.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "logic",
		Short: "Map sizes to kernels, as libraries do",
		Long: "A library logic maps the sizes of GEMMs to kernels: exact sizes first, then ranges, then the nearest\n" +
			"size or a model. It is built from measured times, or read from a file of Tensile or hipBLASLt.",
		Example: "  origami logic build --arch sm90@h200 --most 8 --output h200.json\n" +
			"  origami select --arch sm90@h200 --logic h200.json -m 4096 -n 4096 -k 4096",
		Args: session.OnlySubcommands,
		RunE: session.MissingSubcommand,
	}
	cmd.AddCommand(newBuild(f), newShow(f), newEval(f), newGain(f), newExport(f), newImport(f))
	return cmd
}

var oneFile = session.OneArgument("FILE", "a library logic")

func newImport(f *session.Factory) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "import FILE",
		Short: "Read a library logic of Tensile or hipBLASLt",
		Long: "Read a library logic of Tensile (a YAML list) or hipBLASLt (a list or a mapping), and write it as JSON.\n" +
			"What no GEMM is, and what is wrong, is refused with its line. Decision trees are left out.",
		Example: "  origami logic import vega10_Cijk_Ailk_Bjlk_SB.yaml --output vega10.json",
		Args:    oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := session.ReadLogic(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			text, err := l.JSON()
			if err != nil {
				return err
			}
			return write(f, output, text)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "write to this `FILE`, not to stdout")
	return cmd
}

func newExport(f *session.Factory) *cobra.Command {
	var output, form, name string
	cmd := &cobra.Command{
		Use:   "export FILE --to FORM",
		Short: "Write a library logic as source, or in Tensile's forms",
		Long: "Write a library logic as a package in Go, as a header in C, as Tensile's list (classic), as hipBLASLt's\n" +
			"mapping (map), or as JSON. Source needs nothing besides itself.",
		Example: "  origami logic export h200.json --to c --name h200_logic --output h200_logic.h\n" +
			"  origami logic export h200.json --to classic",
		Args: oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := session.ReadLogic(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			text, err := export(l, form, name)
			if err != nil {
				return err
			}
			return write(f, output, text)
		},
	}
	cmd.Flags().StringVar(&form, "to", "", "the `FORM`: go, c, classic, map or json")
	cmd.Flags().StringVar(&name, "name", "logic", "`NAME` of the Go package, or prefix of the names in C")
	cmd.Flags().StringVarP(&output, "output", "o", "", "write to this `FILE`, not to stdout")
	return cmd
}

func export(l *tensile.Logic, form, name string) ([]byte, error) {
	switch form {
	case "go":
		return l.Go(name, l.Type.String())
	case "c":
		return l.C(name, l.Type.String())
	case "classic":
		return l.Classic()
	case "map":
		return l.Map()
	case "json":
		return l.JSON()
	case "":
		return nil, diag.Inputf("--to is missing").Do("use one of go, c, classic, map, json")
	}
	return nil, diag.Inputf("there is no form %q", form).At("--to").Do("use one of go, c, classic, map, json")
}

func write(f *session.Factory, output string, text []byte) error {
	if output == "" {
		_, err := f.Streams.Writer().Write(text)
		return err
	}
	return session.Replace(output, text)
}
