package terms

// fitted are the values that were found, by generation and by device (arch@device).
var fitted = map[string]map[string]float64{}
