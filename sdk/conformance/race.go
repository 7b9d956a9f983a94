//go:build race

package conformance

const raceDetector = true
