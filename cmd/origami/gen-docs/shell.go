package main

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/origami-gemm/origami/core/release"
)

// writeManPages writes a page per command to section 1 and a page per help topic to section 7. The date is the date
// of the sources, so that equal sources give equal pages.
func writeManPages(root *cobra.Command, folder string, date time.Time) error {
	root.DisableAutoGenTag = true
	for _, cmd := range commands(root) {
		header := &doc.GenManHeader{
			Section: "1", Date: &date, Source: "origami " + release.Version, Manual: "origami manual",
		}
		if cmd.IsAdditionalHelpTopicCommand() {
			header.Section = "7"
		}
		name := strings.ReplaceAll(cmd.CommandPath(), " ", "-")
		err := writeFile(filepath.Join(folder, name+"."+header.Section), func(f *os.File) error {
			return doc.GenMan(cmd, header, f)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// writeCompletions writes the completion script of each shell under the name that the shell looks for.
func writeCompletions(root *cobra.Command, folder string) error {
	for name, generate := range map[string]func(f *os.File) error{
		"origami.bash": func(f *os.File) error { return root.GenBashCompletionV2(f, true) },
		"_origami":     func(f *os.File) error { return root.GenZshCompletion(f) },
		"origami.fish": func(f *os.File) error { return root.GenFishCompletion(f, true) },
		"origami.ps1":  func(f *os.File) error { return root.GenPowerShellCompletionWithDesc(f) },
	} {
		if err := writeFile(filepath.Join(folder, name), generate); err != nil {
			return err
		}
	}
	return nil
}

func writeFile(path string, write func(f *os.File) error) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := write(f); err != nil {
		_ = f.Close() // the error says more
		return err
	}
	return f.Close()
}
