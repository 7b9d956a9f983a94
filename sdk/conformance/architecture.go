package conformance

// architectureChecks are in the order in which a finding helps: what a later one needs comes first.
var architectureChecks = []Check{
	{"info", "Info names the plugin and its version, lists an API version that this origami speaks, and reports good " +
		"health.", checkInfo},
	{"manifest", "The manifest is the same each time, belongs to the plugin of Info, and gives every architecture, " +
		"device, model, kernel family and option a name of its own.", checkManifest},
	{"open", "Every device opens under every model of its architecture and describes itself as what was asked for; " +
		"without a device and a model the first of each opens.", checkOpen},
	{"reopen", "What is closed and opened again has the same handle, description and memory levels.", checkReopen},
	{"bad-open", "An unknown architecture, device, model, option, parameter, unit or value is an error of kind input.",
		checkBadOpen},
	{"units", "Parameters have a unit that origami knows and say where they come from; clock, matrix instructions, " +
		"memory bandwidths, latencies and capacities are of the right sign and magnitude.", checkUnits},
	{"schema", "Every term has a name of its own, a unit, a formula and an explanation, every constant a source, and " +
		"exactly one term is the total.", checkSchema},
	{"answers", "Every problem is answered, or declined with an error of kind input; every candidate has a finite " +
		"positive total or a reason to be rejected and no total; lists hold no configuration twice, and rejected ones " +
		"their positions in ascending order.", checkAnswers},
	{"rejected", "What Candidates rejects has its reason in numbers and no total from Estimate.", checkRejected},
	{"determinism", "The same request gives the same bits, also after the architecture was closed.", checkDeterminism},
	{"order", "The estimate of a configuration is the same to the bit alone, in part of a list, listed twice, and in " +
		"any order.", checkOrder},
	{"monotone-k", "The time of a configuration does not fall when K grows by whole K steps of all its splits.", checkK},
	{"monotone-declared", "The same holds for M and N by whole blocks, where the description declares it.", checkDeclared},
	{"terms", "Terms are finite, their formulas give their values, the shares add up to the total, and the total is " +
		"that of Estimate to the bit.", checkTerms},
	{"mapping", "A mapping has a group of at least one, no more dies than the device, and is the same each time.",
		checkMapping},
	{"rank", "Rank, if it is served, gives what Candidates, Estimate, the declared order and Mapping give, to the bit.",
		checkRank},
	{"bad-input", "Problems, configurations and spaces that cannot be are errors of kind input, and change nothing.",
		checkBadInput},
	{"axes", "A space with a value on a named axis has the configurations with that value and no others; an axis or a " +
		"value that the kernel family does not declare is an error of kind input.", checkAxes},
	{"unused", "A parameter that the description says is unused changes no candidate, no estimate and no launch order.",
		checkUnused},
	{"missing", "A handle or a configuration list that is not held is answered with status NOT_FOUND and the detail " +
		"Missing.", checkMissing},
	{"fields", "Fields that the plugin does not know are passed over, enum values that nobody knows are refused.",
		checkFields},
	{"cancel", "A cancelled call returns promptly with the context's error, and the plugin answers as before.",
		checkCancel},
	{"large", "100,000 configurations and 1,000 problems are answered like few.", checkLarge},
	{"concurrent", "Calls from several goroutines, which open and close meanwhile, give the same bits.", checkConcurrent},
	{"speed", "1,000 configurations are estimated in less than 5 ms, in the fastest of 20 tries.", checkSpeed},
	{"golden", "The rankings of the golden file are reproduced to the bit, where there is one.", checkGolden},
}
