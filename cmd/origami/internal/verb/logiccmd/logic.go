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
		Example: "  origami logic build --arch sm90@h200 --most 8 --output h200.yaml\n" +
			"  origami select --arch sm90@h200 --logic h200.yaml -m 4096 -n 4096 -k 4096",
		Args: session.OnlySubcommands,
		RunE: session.MissingSubcommand,
	}
	cmd.AddCommand(newBuild(f), newShow(f), newEval(f), newExport(f))
	return cmd
}

var oneFile = session.OneArgument("FILE", "a library logic")

func newExport(f *session.Factory) *cobra.Command {
	var output, form, name string
	cmd := &cobra.Command{
		Use:   "export FILE --to FORM",
		Short: "Write a library logic as source, or in Tensile's forms",
		Long: "Write a library logic as a package in Go, as a header in C, as Tensile's list (classic), or as\n" +
			"hipBLASLt's mapping (map). Source needs nothing besides itself.",
		Example: "  origami logic export h200.yaml --to c --name h200_logic --output h200_logic.h\n" +
			"  origami logic export h200.yaml --to classic",
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
	cmd.Flags().StringVar(&form, "to", "", "the `FORM`: go, c, classic or map")
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
	case "":
		return nil, diag.Inputf("--to is missing").Do("use one of go, c, classic, map")
	}
	return nil, diag.Inputf("there is no form %q", form).At("--to").Do("use one of go, c, classic, map")
}

func write(f *session.Factory, output string, text []byte) error {
	if output == "" {
		_, err := f.Streams.Writer().Write(text)
		return err
	}
	return session.Replace(output, text)
}
