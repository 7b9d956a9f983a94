package session

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/origami-gemm/origami/ask/question"
	"github.com/origami-gemm/origami/cmd/origami/internal/config"
	"github.com/origami-gemm/origami/core/diag"
)

// fileKey annotates a flag that names a file, a folder or a program.
const fileKey = "file"

// Register adds a flag for each field of a question, or for those with the given keys.
func Register(flags *pflag.FlagSet, q any, keys ...string) {
	flags.SortFlags = false
	for _, f := range question.Fields(q) {
		if len(keys) > 0 && !slices.Contains(keys, f.Key) {
			continue
		}
		flag := flags.VarPF(&fieldValue{Field: f}, f.Flag(), f.Short, f.Help)
		if f.Type() == "boolean" {
			flag.NoOptDefVal = "true"
		}
		for key, holds := range map[string]bool{config.RareKey: f.Rare, fileKey: f.File} {
			if holds {
				mark(flags, f.Flag(), key)
			}
		}
	}
}

// mark annotates a flag that exists.
func mark(flags *pflag.FlagSet, flag, key string) {
	_ = flags.SetAnnotation(flag, key, []string{"yes"})
}

// IsRare reports whether few people need a flag. The help of a command lists it only with --help --all.
func IsRare(f *pflag.Flag) bool { return f.Annotations[config.RareKey] != nil }

// Files marks flags whose values name files, folders or programs.
func Files(flags *pflag.FlagSet, names ...string) {
	for _, name := range names {
		mark(flags, name, fileKey)
	}
}

// fieldValue is a field of a question as the value of a flag.
type fieldValue struct{ question.Field }

// Type implements pflag.Value: the name of the argument in help.
func (v *fieldValue) Type() string {
	if v.Field.Type() == "boolean" {
		return "bool"
	}
	return v.Arg
}

// NamesFile reports whether the value of a flag names a file, a folder or a program.
func NamesFile(f *pflag.Flag) bool { return f.Annotations[fileKey] != nil }

// dashed is a flag as people write it.
func dashed(flag string) string { return strings.Repeat("-", min(len(flag), 2)) + flag }

// Exclude refuses flags that have no meaning beside a flag that was given.
func Exclude(flags *pflag.FlagSet, given string, others ...string) error {
	for _, other := range others {
		if flags.Changed(given) && flags.Changed(other) {
			return diag.Inputf("%s and %s contradict each other", dashed(given), dashed(other)).Do("leave one of them out")
		}
	}
	return nil
}
