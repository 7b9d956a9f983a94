package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/printable"
)

// complete teaches the shell the values of flags. Names of architectures, models, families and options come from the
// plugins' manifests.
func complete(root *cobra.Command, f *session.Factory) {
	archs := fromArchs(f, true, archNames)
	register(root, "arch", archs)
	register(root, "device", fromArchs(f, false, func(e arch.ArchEntry) (words []string) {
		for _, d := range e.Devices {
			words = append(words, cobra.CompletionWithDesc(d.ID, d.Name))
		}
		return words
	}))
	register(root, "model", fromArchs(f, false, func(e arch.ArchEntry) []string { return e.Models }))
	register(root, "option", fromManifests(f, func(m arch.Manifest) (words []string) {
		for _, o := range m.Options {
			if len(o.Values) == 0 {
				words = append(words, cobra.CompletionWithDesc(o.Key+"=", o.Doc))
			}
			for _, v := range o.Values {
				words = append(words, o.Key+"="+v)
			}
		}
		return words
	}))
	for _, s := range f.Settings.All() {
		if s.Values != nil {
			register(root, s.Flag, cobra.FixedCompletions(s.Values, cobra.ShellCompDirectiveNoFileComp))
		}
	}
	for _, cmd := range root.Commands() {
		register(cmd, "dtype", types(gemm.DTypes()))
		register(cmd, "out-dtype", types(gemm.OutputTypes()))
		register(cmd, "kernel", fromArchs(f, false, func(e arch.ArchEntry) []string { return e.Kernels }))
	}
	if show, _, err := root.Find([]string{"arch", "show"}); err == nil {
		show.ValidArgsFunction = archs
	}
}

func types(list []gemm.DType) cobra.CompletionFunc {
	var names []string
	for _, t := range list {
		names = append(names, t.String())
	}
	return cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp)
}

// register completes a flag of a command, if it has that.
func register(cmd *cobra.Command, flag string, f cobra.CompletionFunc) {
	_ = cmd.RegisterFlagCompletionFunc(flag, f)
}

// fromManifests completes what pick finds in the manifests: words, with a tab before their descriptions.
func fromManifests(f *session.Factory, pick func(arch.Manifest) []string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, typed string) (found []string, _ cobra.ShellCompDirective) {
		err := f.Configure(cmd)
		var manifests []arch.Manifest
		if err == nil {
			manifests, err = f.Manifests(cmd.Context())
		}
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		for _, m := range manifests {
			for _, w := range pick(m) {
				word, doc, _ := strings.Cut(w, "\t")
				w = strings.TrimSuffix(cobra.CompletionWithDesc(printable.Line(word), printable.Line(doc)), "\t")
				if strings.HasPrefix(w, typed) && !slices.Contains(found, w) {
					found = append(found, w)
				}
			}
		}
		return found, cobra.ShellCompDirectiveNoFileComp
	}
}

// fromArchs completes what pick finds in the architectures of the manifests: in all, or in those that --arch and the
// settings name, if they name any.
func fromArchs(f *session.Factory, all bool, pick func(arch.ArchEntry) []string) cobra.CompletionFunc {
	return fromManifests(f, func(m arch.Manifest) (words []string) {
		named := strings.FieldsFunc(strings.ToLower(strings.Join(f.Settings.Arch, ",")), func(r rune) bool {
			return strings.ContainsRune(",:@", r)
		})
		for _, e := range m.Archs {
			if all || len(named) == 0 || slices.ContainsFunc(archNames(e), func(word string) bool {
				name, _, _ := strings.Cut(word, "\t")
				return slices.Contains(named, strings.ToLower(name))
			}) {
				words = append(words, pick(e)...)
			}
		}
		return words
	})
}

// archNames are the names that --arch takes: of an architecture, of its devices behind it, and of its devices.
func archNames(e arch.ArchEntry) []string {
	words := []string{cobra.CompletionWithDesc(e.ID, e.Vendor)}
	for _, d := range e.Devices {
		for _, name := range append([]string{e.ID + "@" + d.ID, d.ID}, d.Aliases...) {
			words = append(words, cobra.CompletionWithDesc(name, d.Name))
		}
	}
	return words
}
