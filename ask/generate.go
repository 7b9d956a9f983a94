package ask

import (
	"bytes"
	"compress/gzip"
	_ "embed" // the schemas
	"encoding/json"
	"fmt"
	"io"
)

//go:generate sh -c "cd .. && go run ./ask/internal/schema"

//go:embed schemas.json.gz
var schemas []byte

// Schemas returns the JSON schemas of the answers by name, as OpenAPI has them. They are generated from the structs.
func Schemas() json.RawMessage {
	var text []byte
	z, err := gzip.NewReader(bytes.NewReader(schemas))
	if err == nil {
		text, err = io.ReadAll(z)
	}
	if err != nil {
		panic(fmt.Sprintf("schemas.json.gz: %v", err)) // a test reads it
	}
	return text
}
