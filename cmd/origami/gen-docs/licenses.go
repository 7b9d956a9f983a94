package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// programs are what is shipped as binaries.
var programs = []string{"./cmd/origami", "./bindings/c"}

// writeLicenses writes the licence of every module in the programs, and Go's, to a file, as their terms ask of those
// who ship binaries. It runs in the root of the module.
func writeLicenses(file string) error {
	list := exec.Command("go", append([]string{"list", "-deps", "-f",
		"{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}\t{{.Dir}}{{end}}{{end}}"}, programs...)...)
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		return fmt.Errorf("go list: %w", err)
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return fmt.Errorf("go env: %w", err)
	}
	modules := strings.Split(strings.TrimSpace(string(out)), "\n")
	modules = append(modules, "Go\t"+strings.TrimSpace(string(root)))
	slices.Sort(modules)
	var text bytes.Buffer
	text.WriteString("The programs of origami contain the modules below.\n")
	for _, module := range slices.Compact(modules) {
		name, folder, _ := strings.Cut(module, "\t")
		licenses, err := licensesIn(folder)
		if err != nil {
			return err
		}
		if len(licenses) == 0 {
			return fmt.Errorf("%s: no licence in %s", name, folder)
		}
		for _, license := range licenses {
			fmt.Fprintf(&text, "\n== %s: %s ==\n\n", name, filepath.Base(license))
			content, err := os.ReadFile(license)
			if err != nil {
				return err
			}
			text.Write(bytes.TrimSpace(content))
			text.WriteByte('\n')
		}
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, text.Bytes(), 0o644)
}

var licenseName = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|copyright|unlicense|patents)([.-].*)?$`)

func licensesIn(folder string) ([]string, error) {
	entries, err := os.ReadDir(folder)
	var found []string
	for _, entry := range entries {
		if !entry.IsDir() && licenseName.MatchString(entry.Name()) {
			found = append(found, filepath.Join(folder, entry.Name()))
		}
	}
	return found, err
}
