package models

import (
	"fmt"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/internal/testing/must"
)

// A comma ends a target or a number, and which one is clear from the part behind it.
func TestParse(t *testing.T) {
	for _, c := range []struct{ words, device, want string }{
		{"h200", "", "h200[]"},
		{"", "h200", "h200[]"},
		{"sm90 gfx942@mi300x", "h200", "sm90@h200[] gfx942@mi300x[]"},
		{"sm90 gfx942", "h200", `it is not clear which --arch the device "h200" belongs to`},
		{"sm90@h100", "h200", `it is not clear which --arch the device "h200" belongs to`},
		{"h200,mi300x", "", "h200[] mi300x[]"},
		{"sm90@h200 gfx942", "", "sm90@h200[] gfx942[]"},
		{"h200:clock=1.5GHz,num_sms=66,mi300x", "", "h200[clock=1.5GHz,num_sms=66] mi300x[]"},
		{"h200:clock=1.5GHz num_sms=66", "", "h200[clock=1.5GHz,num_sms=66]"},
		{"h200,h200:l2_bytes=40MiB", "", "h200[] h200[l2_bytes=40MiB]"},
		{"sm90@auto:1,auto:1:clock=1e9", "", "sm90@auto:1[] auto:1[clock=1e9]"},
		{"mi300x:release=early,h200", "", "mi300x[release=early] h200[]"},
		{"clock=1GHz", "", "changes no architecture"},
		{"h200:clock=1GHz,clock=2GHz", "", "clock is given twice"},
	} {
		targets, err := Parse(strings.Fields(c.words), c.device)
		var got []string
		for i := range targets {
			got = append(got, fmt.Sprintf("%s[%s]", targets[i].Name(), targets[i].whatIf()))
		}
		text := strings.Join(got, " ")
		must.That(t, (err == nil || strings.Contains(err.Error(), c.want)) && (err != nil || text == c.want),
			"%s, device %s: %s, %v; want %s", c.words, c.device, text, err, c.want)
	}
}

// Behind a name, what the plugin declares is an option, and all else a number of the hardware. Both win over what
// stands in the target.
func TestSettings(t *testing.T) {
	for _, c := range []struct{ words, want string }{
		{"one:release=early,clock=1.5GHz", "map[release:early scheme:row] map[clock:{1.5 GHz} units:{2 }]"},
		{"one:release=2,units=7", "map[release:2 scheme:row] map[clock:{1 } units:{7 }]"},
		{"one", "map[scheme:row] map[clock:{1 } units:{2 }]"},
		{"one:releas=early", "--arch one:releas=early: releas has no value"},
	} {
		targets := must.Get(Parse([]string{c.words}, ""))(t)
		target := &targets[0]
		target.Options = map[string]string{"scheme": "row"}
		target.Overrides = Overrides{"clock": {Value: 1}, "units": {Value: 2}}
		found, err := Find(t.Context(), Providers{chips{}}, target)
		got := fmt.Sprint(found.OpenRequest.Options, found.OpenRequest.Overrides)
		if err != nil {
			got = err.Error()
		}
		must.That(t, strings.HasPrefix(got, c.want), "%s: %s, want %s", c.words, got, c.want)
		must.That(t, fmt.Sprint(target.Options, target.Overrides) == "map[scheme:row] map[clock:{1 } units:{2 }]",
			"%s changes the target", c.words)
	}
}

// A target means the device of its file by each of the device's names, and without a name.
func TestDeviceFile(t *testing.T) {
	const file = "arch: chip\ndevice: two\nname: A Chip\naliases: [second]\nvendor: Ours\n"
	source := Providers{chips{}}
	for name, want := range map[string]string{
		"": "chip@two", "chip": "chip@two", "CHIP@Two": "chip@two", "second": "chip@two",
		"chip@one": "chip@one", "one": "chip@one", "chip@third": "chip has no device",
	} {
		found, err := Find(t.Context(), source, &Target{Arch: name, DeviceFile: file})
		got := ""
		if err != nil {
			got = err.Error()
		} else if got = found.ID(); (found.OpenRequest.DeviceFile != nil) != (want == "chip@two") {
			t.Errorf("%s: the request is %+v", name, found.OpenRequest)
		}
		must.That(t, strings.HasPrefix(got, want), "%s is %s, want %s", name, got, want)
	}
}

type chips struct{ arch.Provider }

func (chips) Manifest() arch.Manifest {
	return arch.Manifest{Name: "chips", Options: []arch.Option{{Key: "release"}, {Key: "scheme"}},
		Archs: []arch.ArchEntry{{ID: "chip", Devices: []arch.DeviceEntry{{ID: "one"}}}}}
}
