package tablecmd

import (
	_ "embed"
	"encoding/json"
	"path/filepath"
	"strings"

	"github.com/origami-gemm/origami/cmd/origami/internal/session"
)

const (
	// vllmVersion is the version of vLLM whose source the table was made for.
	vllmVersion = "0.33.0"
	// vllmFormat is the value of format that vllm/origami_vllm_table.py reads.
	vllmFormat = "origami-vllm-invariant-1"
)

// plugin puts the tables beside it into vLLM.
//
//go:embed vllm/origami_vllm_table.py
var plugin []byte

// The metadata of an installed distribution: by them vLLM finds plugin in a folder of PYTHONPATH. vLLM calls the
// functions of the group vllm.general_plugins in each of its processes.
const (
	metadataFolder = "origami_vllm_table-1.dist-info"
	metadata       = "Metadata-Version: 2.1\nName: origami-vllm-table\nVersion: 1\n"
	entryPoints    = "[vllm.general_plugins]\norigami_table = origami_vllm_table:register\n"
)

// fileName is the table's name in a folder, which may have tables of several models and devices.
func (t *invariantTable) fileName() string {
	return t.For + ",device_name=" + strings.ReplaceAll(t.DeviceName, " ", "_") + ".json"
}

// install writes the folder that vLLM reads.
func (t *invariantTable) install(folder string) error {
	about := filepath.Join(folder, metadataFolder)
	if err := makeFolder(about, folder); err != nil {
		return err
	}
	text, err := json.MarshalIndent(t, "", " ")
	if err != nil {
		return err
	}
	for _, file := range []struct {
		folder, name string
		text         []byte
	}{
		{folder, t.fileName(), append(text, '\n')}, {folder, "origami_vllm_table.py", plugin},
		{about, "METADATA", []byte(metadata)}, {about, "entry_points.txt", []byte(entryPoints)},
	} {
		if err := session.ReplaceIn(file.folder, file.name, file.text); err != nil {
			return err
		}
	}
	return nil
}
