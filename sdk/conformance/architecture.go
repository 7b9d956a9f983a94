package conformance

// architectureChecks are in order of dependence: a check comes after those whose properties it needs.
var architectureChecks = []Check{
	{"info", "Info names the plugin and its version, and reports good health.", with((*subject).info, checkInfo)},
	{"manifest", "The manifest is the same each time, belongs to the plugin of Info, and gives every architecture, " +
		"device, model, kernel family and option a distinct name.", with((*subject).manifest, checkManifest)},
	{"open", "Every device opens under every model of its architecture and describes itself as requested; " +
		"without a device and a model the first of each opens.", with((*subject).manifest, checkOpen)},
	{"reopen", "An architecture that is closed and opened again has the same handle, description and memory levels.",
		with((*subject).manifest, checkReopen)},
	{"bad-open", "An unknown architecture, device, model, option, parameter, unit or value is an error of kind input.",
		with((*subject).manifest, checkBadOpen)},
	{"units", "Parameters have a unit that origami knows, and a source; clock, matrix instructions, memory " +
		"bandwidths, latencies and capacities have a plausible sign and magnitude.",
		each((*subject).described, checkUnits)},
	{"schema", "Every term has a distinct name, a unit, a formula and an explanation, every constant has a source, " +
		"and exactly one term is the total.", each((*subject).described, checkSchema)},
	{"answers", "Every problem is answered, or declined with an error of kind input; every candidate has either a " +
		"finite positive total or a reason for its rejection; no list has a configuration twice, and the " +
		"positions of rejected configurations ascend.", checkAnswers},
	{"rejected", "A configuration that Candidates rejects has a reason with numbers, and no total from Estimate.",
		with((*subject).answered, checkRejected)},
	{"determinism", "The same request gives the same bits, also after the architecture was closed.",
		each((*subject).answered, checkDeterminism)},
	{"order", "The estimate of a configuration has the same bits alone, in part of a list, listed twice, and in any " +
		"order.", with((*subject).answered, checkOrder)},
	{"monotone-k", "The time of a configuration does not fall when K grows by whole K steps of all its splits.",
		with((*subject).answered, checkK)},
	{"monotone-declared", "The same holds for M and N by whole blocks, if the description declares it.",
		with((*subject).answered, checkDeclared)},
	{"terms", "Terms are finite, their formulas give their values, the shares add up to the total, and the total has " +
		"the same bits as that of Estimate.", each((*subject).answered, checkTerms)},
	{"mapping", "A mapping has a group of at least one, no more dies than the device, and is the same each time.",
		each((*subject).answered, checkMapping)},
	{"rank", "Rank, if it is served, gives the same bits as Candidates, Estimate, the declared order and Mapping.",
		with((*subject).byTarget, checkRank)},
	{"bad-input", "Impossible problems, configurations and spaces are errors of kind input and change nothing.",
		each((*subject).byTarget, checkBadInput)},
	{"axes",
		"A space with a value on a named axis has the configurations with that value and no others; an axis or a " +
			"value that the kernel family does not declare is an error of kind input.",
		with((*subject).info, checkAxes)},
	{"unused", "A parameter that the description says is unused changes no candidate, no estimate and no launch order.",
		each((*subject).byTarget, checkUnused)},
	{"constants", "With the values in use, EstimateWith gives the times of Estimate, and each set of values gives the " +
		"same bits alone and among others; the manifest lists the models whose constants have bounds.",
		with((*subject).manifest, checkConstants)},
	{"calibration", "Microbenchmarks and their numbers, if the manifest has them, are the same each time; a number " +
		"has a unit, a source and probes of the plan, and there is none without a measurement.",
		with((*subject).manifest, checkCalibration)},
	{"ladder", "A ladder, if the manifest has one, is the same each time, and its rungs, costs, claims and device " +
		"belong to the plugin's models.", with((*subject).manifest, checkLadder)},
	{"missing", "The answer to an unknown handle or configuration list is status NOT_FOUND with the detail Missing.",
		with((*subject).direct, checkMissing)},
	{"fields", "Unknown fields are ignored, unknown enum values are refused.", with((*subject).direct, checkFields)},
	{"cancel", "A cancelled call returns promptly with the context's error, and the plugin answers as before.",
		with((*subject).firstAnswered, checkCancel)},
	{"large", "100,000 configurations and 1,000 problems get the same answers as few.",
		with((*subject).firstAnswered, checkLarge)},
	{"concurrent", "Concurrent calls, which also open and close architectures, give the same bits.",
		with((*subject).answered, checkConcurrent)},
	{"speed", "1,000 configurations are estimated in less than 5 ms, in the fastest of 20 tries or of a second.",
		checkSpeed},
	{"golden", "The rankings of the golden file, if any, are reproduced bit for bit.", checkGolden},
}
