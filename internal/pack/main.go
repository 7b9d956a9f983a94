// Command pack prints or writes files of columns. `pack FILE.cols` prints the lines of a file, `pack FILE` and `pack
// FILE.gz` write FILE.cols.
package main

import (
	"bytes"
	"compress/gzip"
	"io"
	"log"
	"os"
	"strings"

	"github.com/origami-gemm/origami/core/columns"
)

func main() {
	log.SetFlags(0)
	for _, name := range os.Args[1:] {
		if err := pack(name); err != nil {
			log.Fatalf("%s: %v", name, err)
		}
	}
}

func pack(name string) error {
	file, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	if strings.HasSuffix(name, columns.Suffix) {
		text, err := columns.NewReader(bytes.NewReader(file), name, "split it")
		if err == nil {
			_, err = io.Copy(os.Stdout, text)
		}
		return err
	}
	if strings.HasSuffix(name, ".gz") {
		z, err := gzip.NewReader(bytes.NewReader(file))
		if err != nil {
			return err
		}
		if file, err = io.ReadAll(z); err != nil {
			return err
		}
	}
	var out bytes.Buffer
	if err := columns.Write(&out, file); err != nil {
		return err
	}
	return os.WriteFile(strings.TrimSuffix(name, ".gz")+columns.Suffix, out.Bytes(), 0o644)
}
