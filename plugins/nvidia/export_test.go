package nvidia

const OtherWidening = otherWidening
