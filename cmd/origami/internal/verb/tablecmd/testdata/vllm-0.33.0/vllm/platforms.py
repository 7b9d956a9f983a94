"""The platform, as far as the table needs it: an NVIDIA GPU with the name and capability of the environment."""

import os


class current_platform:
    @staticmethod
    def is_cuda():
        return True

    @staticmethod
    def get_device_name():
        if not os.environ["DEVICE_NAME"]:
            raise RuntimeError("no driver")
        return os.environ["DEVICE_NAME"]

    @staticmethod
    def get_device_capability():
        return tuple(int(digit) for digit in os.environ["CAPABILITY"].split("."))
