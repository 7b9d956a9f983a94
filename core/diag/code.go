package diag

// Code names a failure, so that a front end can add what its users can do about it: a flag, a command, a function to
// call. Codes travel between plugins and the host. A receiver ignores a code that it does not know.
type Code string

// The codes. A code is added here when a front end has a hint for it.
const (
	// CodeUnknownDevice is an architecture or device that no plugin knows.
	CodeUnknownDevice Code = "unknown_device"
	// CodeUnknownParameter is a hardware parameter that the architecture Subject does not have.
	CodeUnknownParameter Code = "unknown_parameter"
	// CodeMissingParameter is a hardware parameter of the architecture Subject without a value.
	CodeMissingParameter Code = "missing_parameter"
	// CodeNothingFits is a problem that every candidate was rejected for.
	CodeNothingFits Code = "nothing_fits"
	// CodeOtherLayout is a problem that every candidate was rejected for, while there are some for another layout.
	CodeOtherLayout Code = "other_layout"
	// CodeUnknownPlugin is the name of a plugin that is not installed.
	CodeUnknownPlugin Code = "unknown_plugin"
	// CodeUnusablePlugins is a name that was not found while some plugins cannot be used.
	CodeUnusablePlugins Code = "unusable_plugins"
	// CodeUntrustedPlugin is a plugin at the path Subject that is not trusted, or no longer since its file has changed.
	CodeUntrustedPlugin Code = "untrusted_plugin"
	// CodeMissingPlugin is a trusted plugin of the name Subject whose file is gone.
	CodeMissingPlugin Code = "missing_plugin"
	// CodeSlowPlugin is a plugin at the path Subject that has not described itself in time.
	CodeSlowPlugin Code = "slow_plugin"
	// CodePluginDied is a plugin whose process ended during a call.
	CodePluginDied Code = "plugin_died"
	// CodeNoExecutor is a request to run kernels where no plugin can.
	CodeNoExecutor Code = "no_executor"
	// CodeNoMeasurements is a device without shipped measurements. Subject is how a front end names others.
	CodeNoMeasurements Code = "no_measurements"
)
