"""Properties of a GPU that PyTorch does not have: CUDA's driver and NVML (NVIDIA's management library), by ctypes."""

from __future__ import annotations

import ctypes
import time
import uuid

from origami_gemm import _cuda
from origami_gemm_plugin import DeviceError, Environment


class Driver(_cuda.Driver):
    """libcuda.so.1."""

    def __init__(self):
        try:
            super().__init__()
        except OSError as error:
            raise DeviceError(
                f"there is no NVIDIA driver: {error}", where="triton", fix="install the driver"
            ) from error

    def failure(self, function: str, status: int) -> DeviceError:
        text = ctypes.c_char_p()
        self._cuda.cuGetErrorString(status, ctypes.byref(text))
        return DeviceError(
            f"{function}: {(text.value or b'unknown error').decode()} ({status})",
            where="triton",
            fix="see whether nvidia-smi finds the GPU",
        )

    def count(self) -> int:
        n = ctypes.c_int()
        self._call("cuDeviceGetCount", ctypes.byref(n))
        return n.value

    def uuid(self, index: int) -> str:
        raw = (ctypes.c_ubyte * 16)()
        self._call("cuDeviceGetUuid", raw, self.device(index))
        return f"GPU-{uuid.UUID(bytes=bytes(raw))}"

    def ctas_per_sm(self, function: int, threads: int, shared_bytes: int) -> int:
        """The occupancy of a kernel."""
        n = ctypes.c_int()
        self._call(
            "cuOccupancyMaxActiveBlocksPerMultiprocessor",
            ctypes.byref(n),
            ctypes.c_void_p(function),
            threads,
            ctypes.c_size_t(shared_bytes),
        )
        return n.value


# nvmlClocksEventReasons without idle, bit 0, which does not limit the clock.
REASONS = {
    0x2: "applications_clocks",
    0x4: "sw_power_cap",
    0x8: "hw_slowdown",
    0x10: "sync_boost",
    0x20: "sw_thermal",
    0x40: "hw_thermal",
    0x80: "hw_power_brake",
    0x100: "display_clocks",
}


def reasons(bits: int) -> list[str]:
    """Names the bits of the clocks' event reasons."""
    names = [name for bit, name in REASONS.items() if bits & bit]
    rest = bits & ~(sum(REASONS) | 1)
    return names + ([hex(rest)] if rest else [])


class State:
    """NVML's values of a device. Without NVML, as in some containers, there are none, which is not an error: they are
    then missing in a measurement."""

    _CLOCK_SM, _TEMPERATURE_GPU = 1, 0

    def __init__(self, device_uuid: str):
        self._device, self._nvml = ctypes.c_void_p(), None
        try:
            nvml = ctypes.CDLL("libnvidia-ml.so.1")
            if not nvml.nvmlInit_v2() and not nvml.nvmlDeviceGetHandleByUUID(
                device_uuid.encode(), ctypes.byref(self._device)
            ):
                self._nvml = nvml
        except (OSError, AttributeError):
            pass

    def _read(self, name: str, *args, kind=ctypes.c_uint) -> float:
        """A number, 0 if unknown."""
        value = kind()
        call = getattr(self._nvml, name, None) if self._nvml else None
        if call is None or call(self._device, *args, ctypes.byref(value)):
            return 0
        return value.value

    def clock(self) -> float:
        """The SM clock now."""
        return self._read("nvmlDeviceGetClockInfo", self._CLOCK_SM) * 1e6

    def attributes(self) -> dict[str, float]:
        """The attributes that the driver does not have, or no longer reports correctly."""
        found = {
            "clock": self._read("nvmlDeviceGetMaxClockInfo", self._CLOCK_SM) * 1e6,
            "tdp": self._read("nvmlDeviceGetPowerManagementDefaultLimit") / 1e3,
        }
        return {name: value for name, value in found.items() if value}

    def environment(self, runtime: str) -> Environment:
        """Stamps a measurement."""
        version = ctypes.create_string_buffer(81)
        if not self._nvml or self._nvml.nvmlSystemGetDriverVersion(version, len(version)):
            version.value = b""
        bits = self._read("nvmlDeviceGetCurrentClocksEventReasons", kind=ctypes.c_ulonglong) or self._read(
            "nvmlDeviceGetCurrentClocksThrottleReasons", kind=ctypes.c_ulonglong)  # its name before driver 535
        return Environment(
            time_ns=time.time_ns(),
            driver=version.value.decode(errors="replace"),
            runtime=runtime,
            clock_hz=self.clock(),
            power_watts=self._read("nvmlDeviceGetPowerUsage") / 1e3,
            power_limit_watts=self._read("nvmlDeviceGetEnforcedPowerLimit") / 1e3,
            temperature_celsius=self._read("nvmlDeviceGetTemperature", self._TEMPERATURE_GPU),
            throttle_reasons=reasons(int(bits)),
        )
