"""The CUDA driver's description of a GPU, through ctypes. It needs no other package."""

import ctypes

# CUdevice_attribute of the CUDA driver API, and the factor to base units.
ATTRIBUTES = {
    "num_sms": (16, 1),
    "clock": (13, 1e3),
    "l2_bytes": (38, 1),
    "shared_memory_bytes": (97, 1),
    "shared_memory_per_sm": (81, 1),
    "register_file": (82, 1),
    "memory_clock": (36, 1e3),
    "bus_width_bits": (37, 1),
    "compute_capability_major": (75, 1),
    "compute_capability_minor": (76, 1),
}
TRANSFERS_PER_CLOCK = 2  # double data rate: how the driver counts its memory clock


class Driver:
    """libcuda.so.1. Raises OSError without it. Devices have the numbers of the driver."""

    def __init__(self):
        self._cuda = ctypes.CDLL("libcuda.so.1")
        self._call("cuInit", 0)

    def failure(self, function: str, status: int) -> Exception:
        """The exception for a failed call."""
        return RuntimeError(f"{function} failed with {status}")

    def _call(self, function: str, *args) -> None:
        status = getattr(self._cuda, function)(*args)
        if status:
            raise self.failure(function, status)

    def device(self, index: int) -> ctypes.c_int:
        """The handle of a device."""
        device = ctypes.c_int()
        self._call("cuDeviceGet", ctypes.byref(device), index)
        return device

    def name(self, index: int) -> str:
        text = ctypes.create_string_buffer(256)
        self._call("cuDeviceGetName", text, len(text), self.device(index))
        return text.value.decode(errors="replace")

    def version(self) -> int:
        """The driver's version, 13000 for 13.0."""
        version = ctypes.c_int()
        self._call("cuDriverGetVersion", ctypes.byref(version))
        return version.value

    def attributes(self, index: int) -> dict[str, float]:
        """The attributes of a device, by parameter name in base units."""
        device, known = self.device(index), {}
        for name, (attribute, scale) in ATTRIBUTES.items():
            value = ctypes.c_int()
            self._call("cuDeviceGetAttribute", ctypes.byref(value), attribute, device)
            if value.value > 0 or name == "compute_capability_minor":  # 0 means unknown, but not in version 9.0
                known[name] = value.value * scale
        memory = ctypes.c_size_t()
        self._call("cuDeviceTotalMem_v2", ctypes.byref(memory), device)
        known["memory_bytes"] = memory.value
        if "memory_clock" in known and "bus_width_bits" in known:
            known["dram_bandwidth"] = TRANSFERS_PER_CLOCK * known["memory_clock"] * known["bus_width_bits"] / 8
        return known

    def gpu(self, index: int) -> dict:
        """The arguments of lib.Model for a device."""
        attributes = self.attributes(index)
        arch = f"sm{attributes.pop('compute_capability_major')}{attributes.pop('compute_capability_minor')}"
        return {"arch": arch, "live": {"name": self.name(index), "attributes": attributes}}
