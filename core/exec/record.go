package exec

import (
	"math"
	"time"

	"github.com/origami-gemm/origami/core/unit"
)

// EnvironmentRecord is an environment in JSON, in every file of records.
type EnvironmentRecord struct {
	Time            time.Time `json:"time"`
	Driver          string    `json:"driver,omitempty"`
	Runtime         string    `json:"runtime,omitempty"`
	Clock           float64   `json:"clock_hz,omitempty"`
	Power           float64   `json:"power_watts,omitempty"`
	PowerLimit      float64   `json:"power_limit_watts,omitempty"`
	Temperature     float64   `json:"temperature_celsius,omitempty"`
	ThrottleReasons []string  `json:"throttle_reasons,omitempty"`
}

// Record returns the environment for JSON. A sensor's reading that is no finite number becomes 0.
func (e *Environment) Record() EnvironmentRecord {
	return EnvironmentRecord{
		e.Time.UTC(), e.Driver, e.Runtime, Finite(float64(e.Clock)), Finite(e.PowerWatts), Finite(e.PowerLimitWatts),
		Finite(e.TemperatureC), e.ThrottleReasons,
	}
}

// Environment returns the environment of a record.
func (r *EnvironmentRecord) Environment() Environment {
	return Environment{
		Time: r.Time, Driver: r.Driver, Runtime: r.Runtime, Clock: unit.Hertz(r.Clock), PowerWatts: r.Power,
		PowerLimitWatts: r.PowerLimit, TemperatureC: r.Temperature, ThrottleReasons: r.ThrottleReasons,
	}
}

// Finite returns a sensor's reading, 0 if it is not a finite number.
func Finite(v float64) float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	return v
}
