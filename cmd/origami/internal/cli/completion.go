package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/origami-gemm/origami/cmd/origami/internal/config"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/printable"
)

// complete teaches the shell the values of flags. Names of architectures, models, families and options come from the
// plugins' manifests.
func complete(root *cobra.Command, f *session.Factory) {
	archs := orDevices(fromArchs(f, archNames), fromArchs(f, namesOfDevices))
	register(root, "arch", archs)
	register(root, "device", fromNamedArchs(f, deviceNames))
	register(root, "model", fromNamedArchs(f, func(e arch.ArchEntry) []string { return plainWords(e.Models) }))
	register(root, "option", fromManifests(f, optionWords))
	register(root, "rung", cobra.FixedCompletions(config.Rungs(), cobra.ShellCompDirectiveNoFileComp))
	register(root, "format", cobra.FixedCompletions(config.Formats, cobra.ShellCompDirectiveNoFileComp))
	register(root, "log-level", cobra.FixedCompletions(config.LogLevels, cobra.ShellCompDirectiveNoFileComp))
	dtypes, outputs := typeNames(gemm.DTypes()), typeNames(gemm.OutputTypes())
	for _, cmd := range root.Commands() {
		if cmd.Flags().Lookup("dtype") != nil {
			register(cmd, "dtype", cobra.FixedCompletions(dtypes, cobra.ShellCompDirectiveNoFileComp))
			register(cmd, "kernel", fromNamedArchs(f, func(e arch.ArchEntry) []string { return plainWords(e.Kernels) }))
		}
		if cmd.Flags().Lookup("out-dtype") != nil {
			register(cmd, "out-dtype", cobra.FixedCompletions(outputs, cobra.ShellCompDirectiveNoFileComp))
		}
		for _, sub := range cmd.Commands() {
			if cmd.Name() == "arch" && sub.Name() == "show" {
				sub.ValidArgsFunction = archs
			}
		}
	}
}

func typeNames(types []gemm.DType) (names []string) {
	for _, t := range types {
		names = append(names, t.String())
	}
	return names
}

func register(cmd *cobra.Command, flag string, f cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, f); err != nil {
		panic(err) // the flag does not exist: a bug that every run would show
	}
}

// fromManifests completes what pick finds in the manifests, each word once.
func fromManifests(f *session.Factory, pick func(arch.Manifest) []string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		if f.Configure(cmd) != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		manifests, err := f.Manifests(cmd.Context())
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		var words []string
		for _, m := range manifests {
			for _, w := range pick(m) {
				if !slices.Contains(words, w) {
					words = append(words, w)
				}
			}
		}
		return words, cobra.ShellCompDirectiveNoFileComp
	}
}

// fromArchs completes what pick finds in the architectures of the manifests.
func fromArchs(f *session.Factory, pick func(arch.ArchEntry) []string) cobra.CompletionFunc {
	return fromManifests(f, func(m arch.Manifest) (words []string) {
		for _, e := range m.Archs {
			words = append(words, pick(e)...)
		}
		return words
	})
}

// fromNamedArchs is fromArchs for the architectures that the settings name, and for all if they name none.
func fromNamedArchs(f *session.Factory, pick func(arch.ArchEntry) []string) cobra.CompletionFunc {
	return fromArchs(f, func(e arch.ArchEntry) []string {
		if named := strings.Join(f.Settings.Arch, ","); named != "" && !isNamed(e, named) {
			return nil
		}
		return pick(e)
	})
}

// isNamed reports whether a list as --arch takes it names an architecture or a device of it.
func isNamed(e arch.ArchEntry, list string) bool {
	known := []string{e.ID}
	for _, d := range e.Devices {
		known = append(append(known, d.ID), d.Aliases...)
	}
	for name := range strings.SplitSeq(list, ",") {
		name, _, _ = strings.Cut(name, ":") // options and hardware numbers follow
		name, _, _ = strings.Cut(name, "@")
		if slices.ContainsFunc(known, func(k string) bool { return strings.EqualFold(k, name) }) {
			return true
		}
	}
	return false
}

// orDevices completes the names of devices where no other word begins with what is typed.
func orDevices(words, devices cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		found, directive := words(cmd, args, typed)
		if slices.ContainsFunc(found, func(w string) bool { return strings.HasPrefix(w, typed) }) {
			return found, directive
		}
		return devices(cmd, args, typed)
	}
}

// word is a completion with its description. A tab or a line end in either would mean something to the shell's script.
func word(text, doc string) string {
	if text = printable.Line(text); doc == "" {
		return text
	}
	return cobra.CompletionWithDesc(text, printable.Line(doc))
}

func plainWords(texts []string) (words []string) {
	for _, text := range texts {
		words = append(words, word(text, ""))
	}
	return words
}

func archNames(e arch.ArchEntry) []string {
	words := []string{word(e.ID, e.Vendor)}
	for _, d := range e.Devices {
		words = append(words, word(e.ID+"@"+d.ID, d.Name))
	}
	return words
}

func deviceNames(e arch.ArchEntry) (words []string) {
	for _, d := range e.Devices {
		words = append(words, word(d.ID, d.Name))
	}
	return words
}

// namesOfDevices are the names that --arch takes for devices.
func namesOfDevices(e arch.ArchEntry) (words []string) {
	for _, d := range e.Devices {
		for _, name := range append([]string{d.ID}, d.Aliases...) {
			words = append(words, word(name, d.Name))
		}
	}
	return words
}

func optionWords(m arch.Manifest) (words []string) {
	for _, o := range m.Options {
		if len(o.Values) == 0 {
			words = append(words, word(o.Key+"=", o.Doc))
		}
		for _, v := range o.Values {
			words = append(words, word(o.Key+"="+v, ""))
		}
	}
	return words
}
