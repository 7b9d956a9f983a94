package ask

import (
	_ "embed" // the schemas
	"encoding/json"
)

//go:generate sh -c "cd .. && go run ./ask/internal/schema"

// Schemas are the JSON schemas of the answers by name, as OpenAPI has them. They are generated from the structs.
//
//go:embed schemas.json
var Schemas json.RawMessage
