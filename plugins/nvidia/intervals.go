package nvidia

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/plugins/nvidia/data"
)

// folder is the place of the data sets as `make intervals` names them.
const folder = "plugins/nvidia/data/"

// intervals are the decoded lines of the embedded file, by how these lines begin.
var intervals sync.Map

// intervalsOf reads the lines of the embedded file about a model. Reading all of them would be a tenth of the time of a
// command.
func intervalsOf(id, device, model string, rung arch.Rung) []arch.UncertaintyRecord {
	begin := fmt.Sprintf(`{"arch":%q,"device":%q,"model":%q,"rung":%q,`, id, device, model, rung)
	if known, ok := intervals.Load(begin); ok {
		return known.([]arch.UncertaintyRecord)
	}
	var found []arch.UncertaintyRecord
	for line := range bytes.Lines(data.Intervals) {
		if !bytes.HasPrefix(line, []byte(begin)) {
			continue
		}
		var one struct{ Uncertainty arch.UncertaintyRecord }
		if err := json.Unmarshal(line, &one); err != nil {
			panic(fmt.Sprintf("intervals.jsonl: %v", err)) // a test reads it
		}
		found = append(found, one.Uncertainty)
	}
	intervals.Store(begin, found)
	return found
}

// uncertaintyOf returns the uncertainty of an opened model's times. It is empty if the model was not compared with
// measurements of the device.
func uncertaintyOf(d *arch.Description) []arch.Uncertainty {
	var uncertainty []arch.Uncertainty
	for _, one := range intervalsOf(d.Arch, d.Device, d.Model, d.Rung) {
		u, err := one.Uncertainty()
		if err != nil {
			panic(fmt.Sprintf("intervals.jsonl: %v", err))
		}
		u.Source = strings.ReplaceAll(u.Source, folder, "")
		u.Checked.DataSet = strings.TrimPrefix(u.Checked.DataSet, folder)
		uncertainty = append(uncertainty, u)
	}
	return uncertainty
}
