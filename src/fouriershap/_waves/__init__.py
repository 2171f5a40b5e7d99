"""Waves: functions of any features as sums of cosines."""
