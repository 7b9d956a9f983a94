package columns

import (
	"bytes"
	"compress/gzip"
)

// Zip is a file with any content.
func Zip(text []byte) []byte {
	var file bytes.Buffer
	z := gzip.NewWriter(&file)
	_, _ = z.Write(text)
	_ = z.Close()
	return file.Bytes()
}
