package mma

// EnoughStages is for tests over the devices that the plugin has.
const EnoughStages = enoughStages
