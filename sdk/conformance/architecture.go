package conformance

import "github.com/origami-gemm/origami/core/arch"

// architectureChecks are in order of dependence: a check comes after those whose properties it needs.
var architectureChecks = []Check{
	{"info", "Info names the plugin and its version, and reports good health.", with((*run).info, checkInfo)},
	{"manifest", "The manifest is the same each time, belongs to the plugin of Info, and gives every architecture, " +
		"device, model, kernel family and option a distinct name.", with((*run).manifest, checkManifest)},
	{"open", "Every device opens under every model of its architecture and describes itself as requested; " +
		"without a device and a model the first of each opens.", with((*run).manifest, checkOpen)},
	{"reopen", "An architecture that is closed and opened again has the same handle, description and memory levels.",
		with((*run).manifest, checkReopen)},
	{"bad-open", "An unknown architecture, device, model, option, parameter, unit or value is an error of kind input.",
		with((*run).manifest, checkBadOpen)},
	{"units", "Parameters have a unit that origami knows, and a source; clock, matrix instructions, memory " +
		"bandwidths, latencies and capacities have a plausible sign and magnitude.",
		each((*run).described, checkUnits)},
	{"schema", "Every term has a distinct name, a unit, a formula and an explanation, every constant has a source, " +
		"and exactly one term is the total.", each((*run).described, checkSchema)},
	{"answers", "Every problem is answered, or declined with an error of kind input; every candidate has either a " +
		"finite positive total or a reason for its rejection; no list has a configuration twice, and the " +
		"positions of rejected configurations ascend.", checkAnswers},
	{"rejected", "A configuration that Candidates rejects has a reason with numbers, and no total from Estimate.",
		with((*run).answered, checkRejected)},
	{"determinism", "The same request gives the same bits, also after the architecture was closed.",
		each((*run).answered, checkDeterminism)},
	{"order", "The estimate of a configuration has the same bits alone, in part of a list, listed twice, and in any " +
		"order.", with((*run).answered, checkOrder)},
	{"monotone-k", "The time of a configuration does not fall when K grows by whole K steps of all its splits.",
		with((*run).answered, checkMonotone(arch.DimK))},
	{"monotone-declared", "The same holds for M and N by whole blocks, if the description declares it.",
		with((*run).answered, checkMonotone(arch.DimM, arch.DimN))},
	{"terms", "Terms are finite, their formulas give their values, the shares add up to the total, and the total has " +
		"the same bits as that of Estimate.", each((*run).answered, checkTerms)},
	{"mapping", "A mapping has a group of at least one, no more dies than the device, and is the same each time.",
		each((*run).answered, checkMapping)},
	{"rank", "Rank, if it is served, gives the same bits as Candidates, Estimate, the declared order and Mapping.",
		each((*run).byTarget, checkRank)},
	{"bad-input", "Impossible problems, configurations and spaces are errors of kind input and change nothing.",
		each((*run).byTarget, checkBadInput)},
	{"axes",
		"A space with a value on a named axis has the configurations with that value and no others; an axis or a " +
			"value that the kernel family does not declare is an error of kind input.",
		each((*run).byTarget, checkAxes)},
	{"unused", "A parameter that the description says is unused changes no candidate, no estimate and no launch order.",
		each((*run).byTarget, checkUnused)},
	{"constants", "With the values in use, EstimateWith gives the times of Estimate, and each set of values gives the " +
		"same bits alone and among others; the manifest lists the models whose constants have bounds.",
		with((*run).manifest, checkConstants)},
	{"calibration", "Microbenchmarks and their numbers, if the manifest has them, are the same each time; a number " +
		"has a unit, a source and probes of the plan, and there is none without a measurement.",
		with((*run).manifest, checkCalibration)},
	{"ladder", "A ladder, if the manifest has one, is the same each time, and its rungs, costs, claims and device " +
		"belong to the plugin's models.", with((*run).manifest, checkLadder)},
	{"missing", "The answer to an unknown handle or configuration list is status NOT_FOUND with the detail Missing.",
		with((*run).direct, checkMissing)},
	{"fields", "Unknown fields are ignored, unknown enum values are refused.", with((*run).direct, checkFields)},
	{"cancel", "A cancelled call returns promptly with the context's error, and the plugin answers as before.",
		with((*run).firstAnswered, checkCancel)},
	{"large", "100,000 configurations and 1,000 problems get the same answers as few.",
		with((*run).firstAnswered, checkLarge)},
	{"concurrent", "Concurrent calls, which also open and close architectures, give the same bits.",
		with((*run).answered, checkConcurrent)},
	{"speed", "1,000 configurations are estimated in less than 5 ms, in the fastest of 20 tries or of a second.",
		checkSpeed},
	{"golden", "The rankings of the golden file, if any, are reproduced bit for bit.", checkGolden},
}
