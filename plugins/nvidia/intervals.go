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

// interval is one line of data.Intervals, with the fields that a model needs.
type interval struct {
	Arch, Device, Model string
	Rung                arch.Rung
	Uncertainty         arch.UncertaintyRecord
}

// folder is the place of the data sets as `make intervals` names them.
const folder = "plugins/nvidia/data/"

// intervals reads the embedded file.
var intervals = sync.OnceValue(func() []interval {
	var all []interval
	for line := range bytes.Lines(data.Intervals) {
		var one interval
		if err := json.Unmarshal(line, &one); err != nil {
			panic(fmt.Sprintf("intervals.jsonl: %v", err)) // a test reads it
		}
		all = append(all, one)
	}
	return all
})

// uncertaintyOf returns the uncertainty of an opened model's times. It is empty if the model was not compared with
// measurements of the device.
func uncertaintyOf(d *arch.Description) []arch.Uncertainty {
	var uncertainty []arch.Uncertainty
	for _, one := range intervals() {
		if one.Arch != d.Arch || one.Device != d.Device || one.Model != d.Model || one.Rung != d.Rung {
			continue
		}
		u, err := one.Uncertainty.Uncertainty()
		if err != nil {
			panic(fmt.Sprintf("intervals.jsonl: %v", err))
		}
		u.Source = strings.ReplaceAll(u.Source, folder, "")
		u.Checked.DataSet = strings.TrimPrefix(u.Checked.DataSet, folder)
		uncertainty = append(uncertainty, u)
	}
	return uncertainty
}
