//go:build cuda

package cuda

import (
	"fmt"
	"sync"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/google/uuid"

	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/unit"
)

// state reads clocks, power and temperature of a device from NVML. Some containers lack NVML. That is not an error:
// measurements then leave these values out.
type state struct {
	handle nvml.Device
	known  bool
}

var startNVML = sync.OnceValue(func() bool { return nvml.Init() == nvml.SUCCESS })

// newState finds a device by the identifier that the driver gives it.
func newState(id uuid.UUID) state {
	if !startNVML() {
		return state{}
	}
	d, r := nvml.DeviceGetHandleByUUID("GPU-" + id.String())
	return state{d, r == nvml.SUCCESS}
}

// clock returns the SM clock now, 0 if unknown.
func (s state) clock() unit.Hertz {
	if !s.known {
		return 0
	}
	mhz, r := s.handle.GetClockInfo(nvml.CLOCK_SM)
	if r != nvml.SUCCESS {
		return 0
	}
	return unit.Hertz(mhz) * 1e6
}

// attributes adds what the driver API does not report, or no longer reports correctly.
func (s state) attributes(to map[string]float64) {
	if !s.known {
		return
	}
	if mhz, r := s.handle.GetMaxClockInfo(nvml.CLOCK_SM); r == nvml.SUCCESS {
		to["clock"] = float64(mhz) * 1e6
	}
	if mw, r := s.handle.GetPowerManagementDefaultLimit(); r == nvml.SUCCESS {
		to["tdp"] = float64(mw) / 1e3
	}
}

// environment returns the conditions of a measurement.
func (s state) environment() exec.Environment {
	e := exec.Environment{Time: time.Now().UTC()}
	if !s.known {
		return e
	}
	if v, r := nvml.SystemGetDriverVersion(); r == nvml.SUCCESS {
		e.Driver = v
	}
	e.Clock = s.clock()
	if mw, r := s.handle.GetPowerUsage(); r == nvml.SUCCESS {
		e.PowerWatts = float64(mw) / 1e3
	}
	if mw, r := s.handle.GetEnforcedPowerLimit(); r == nvml.SUCCESS {
		e.PowerLimitWatts = float64(mw) / 1e3
	}
	if c, r := s.handle.GetTemperature(nvml.TEMPERATURE_GPU); r == nvml.SUCCESS {
		e.TemperatureC = float64(c)
	}
	if bits, r := s.handle.GetCurrentClocksEventReasons(); r == nvml.SUCCESS {
		e.ThrottleReasons = reasons(bits)
	}
	return e
}

// reasons names the bits of the clocks' event reasons, without idle, which throttles nothing.
// Source: NVML API reference, nvmlClocksEventReasons.
func reasons(bits uint64) []string {
	var names []string
	for _, reason := range []struct {
		bit  uint64
		name string
	}{
		{0x2, "applications_clocks"}, {0x4, "sw_power_cap"}, {0x8, "hw_slowdown"}, {0x10, "sync_boost"},
		{0x20, "sw_thermal"},
		{0x40, "hw_thermal"}, {0x80, "hw_power_brake"}, {0x100, "display_clocks"},
	} {
		if bits&reason.bit != 0 {
			names = append(names, reason.name)
			bits &^= reason.bit
		}
	}
	if bits &^= 0x1; bits != 0 {
		names = append(names, fmt.Sprintf("0x%x", bits))
	}
	return names
}
